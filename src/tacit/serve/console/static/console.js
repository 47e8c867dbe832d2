// The console works without this file. It shows the slider, keeps it and the number together, sends a question with
// Ctrl-Enter, and says so when the server does not answer.
"use strict";

document.documentElement.classList.add("js");

document.addEventListener("DOMContentLoaded", () => {
  const slider = document.getElementById("slider");
  const epsilon = document.getElementById("epsilon");
  if (slider && epsilon) {
    const follow = () => {
      const price = Number(epsilon.value);
      if (price > 0) slider.value = String(Math.log10(price));
    };
    slider.hidden = false;
    follow();
    slider.addEventListener("input", () => {
      epsilon.value = String(Number(Math.pow(10, Number(slider.value)).toPrecision(2)));
      slider.setAttribute("aria-valuetext", "epsilon " + epsilon.value);
    });
    epsilon.addEventListener("input", follow);
  }

  const question = document.getElementById("question");
  if (question) {
    question.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        question.requestSubmit(document.getElementById("ask"));
      }
    });
  }

  const lost = document.getElementById("lost");
  const say = (wrong) => () => { lost.hidden = !wrong; };
  document.body.addEventListener("htmx:sendError", say(true));
  document.body.addEventListener("htmx:responseError", say(true));
  document.body.addEventListener("htmx:afterSwap", say(false));
});
