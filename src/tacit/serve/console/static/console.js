// The console works without this file. It shows the slider and keeps it, the number and the accuracy together, sends a
// question with Ctrl-Enter, brings what arrives into view and tells it to screen readers, and says so when the server
// does not answer.
"use strict";

document.documentElement.classList.add("js");

document.addEventListener("DOMContentLoaded", () => {
  const question = document.getElementById("question");
  if (question) followQuestion(question);

  // A part that took its own button away keeps the focus near where it was.
  document.body.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.elt.id === "sessions") document.getElementById("sessions-head").focus();
  });

  const lost = document.getElementById("lost");
  const say = (wrong) => () => { lost.hidden = !wrong; };
  document.body.addEventListener("htmx:sendError", say(true));
  document.body.addEventListener("htmx:responseError", say(true));
  document.body.addEventListener("htmx:afterSwap", say(false));
});

function followQuestion(question) {
  const ask = document.getElementById("ask");
  const terms = keepTermsTogether(question);
  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (!ask.disabled) question.requestSubmit(ask);
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-use-epsilon]");
    if (button) terms.choose(button.dataset.useEpsilon);
    if (event.target.closest("[data-edit]")) {
      event.preventDefault();
      question.scrollIntoView({ block: "start" });
      document.getElementById("sql").focus();
    }
  });
  document.body.addEventListener("htmx:afterSettle", (event) => {
    terms.update();
    if (event.detail.target.id === "result") showResult(event.detail.target);
    else if (event.detail.target.id === "price" && question.contains(document.activeElement)) announce(event.detail.target);
  });
}

// The answer, or the refusal, comes to the top of the window and has the focus.
function showResult(result) {
  announce(result);
  const head = result.querySelector(".answer h2, .refusal");
  if (!head) return;
  head.focus({ preventScroll: true });
  result.firstElementChild.scrollIntoView({ block: "start" });
}

// A refusal is an alert, which is told by itself; what else arrives is told in a sentence.
function announce(where) {
  const words = where.querySelector("[data-announce]");
  if (words) document.getElementById("announced").textContent = words.dataset.announce;
}

const STEPS = 100;

// One of slider, epsilon and accuracy is typed, and the others follow. The slider ends at what is left of the budget.
function keepTermsTogether(question) {
  const slider = document.getElementById("slider");
  const epsilon = document.getElementById("epsilon");
  const within = document.getElementById("within");
  const example = within.placeholder;
  let least = 0.01;
  let most = 10;
  const short = (number) => String(Number(number.toPrecision(2)));
  const follow = () => {
    const price = Number(epsilon.value);
    if (price > 0) slider.value = String(Math.round((STEPS * Math.log(price / least)) / Math.log(most / least)));
    slider.setAttribute("aria-valuetext", "epsilon " + epsilon.value);
  };
  const choose = (price) => {
    epsilon.value = price;
    within.value = "";
    follow();
    epsilon.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const update = () => {
    const left = Number(document.getElementById("left").dataset.left);
    slider.disabled = !(left > 0);
    if (left > 0) {
      most = Math.min(10, left);
      least = Math.min(0.01, most / 100);
    }
    const price = document.querySelector("#price .price");
    if (price && within.value.trim()) epsilon.value = price.dataset.epsilon;
    within.placeholder = (price && price.dataset.within) || example;
    follow();
  };
  slider.addEventListener("input", () => {
    const place = Number(slider.value) / STEPS;
    const price = least * Math.pow(most / least, place);
    epsilon.value = place === 1 || Number(short(price)) > most ? String(most) : short(price);
    within.value = "";
    slider.setAttribute("aria-valuetext", "epsilon " + epsilon.value);
  });
  epsilon.addEventListener("input", () => {
    within.value = "";
    follow();
  });
  slider.hidden = false;
  update();
  return { choose, update };
}
