// The survey's page. True answers stay in the inputs: they are read once, randomized, and cleared. What is drawn is kept
// in this browser before it is shown, so that nobody tosses again until the coins please them, and a second visit sends
// the same report: it tells nothing more.
import { placeOf, respond, says } from "./survey_encoder.js";

const main = document.getElementById("main");
const form = JSON.parse(main.dataset.form);
const memory = "tacit-survey-" + form.digest;
const part = (name) => document.getElementById(name);
let kept = recall();

function recall() {
  try {
    const found = JSON.parse(localStorage.getItem(memory));
    return found && found.report.survey === form.digest ? found : null;
  } catch {
    return null;
  }
}

function remember(state) {
  kept = state;
  try {
    localStorage.setItem(memory, JSON.stringify(state));
  } catch {
    part("forgetful").hidden = false; // the browser keeps nothing: a second answer would be a second report
  }
}

// The true answer in one question's inputs; undefined where there is none.
function truthOf(question, box) {
  if (question.kind === "number") {
    const text = box.querySelector("input").value.trim().replace(",", ".");
    return text === "" ? undefined : placeOf(question, Number(text));
  }
  const inputs = [...box.querySelectorAll("input")];
  if (question.kind === "several") {
    const digits = inputs.map((input) => Number(input.checked)).join("");
    return digits.replaceAll("0", "").length <= question.most ? digits : undefined;
  }
  const place = inputs.findIndex((input) => input.checked);
  return place < 0 ? undefined : place;
}

function draw() {
  kept = recall(); // another window may have tossed meanwhile
  if (kept) {
    clear();
    show();
    return;
  }
  const boxes = [...document.querySelectorAll(".question")];
  const truths = form.questions.map((question, place) => truthOf(question, boxes[place]));
  boxes.forEach((box, place) => {
    box.querySelector(".missing").hidden = truths[place] !== undefined;
  });
  const first = truths.indexOf(undefined);
  if (first >= 0) {
    boxes[first].querySelector("input").focus();
    return;
  }
  remember({ report: respond(form, truths), sent: false });
  clear();
  show();
  part("drawn-head").focus();
}

function clear() {
  for (const input of document.querySelectorAll(".question input")) {
    if (input.type === "radio" || input.type === "checkbox") input.checked = false;
    else input.value = "";
  }
}

function show() {
  part("answering").hidden = true;
  part("drawn").hidden = false;
  part("drawn-head").textContent = kept.sent ? "This is what was sent" : "This is what would be sent";
  part("before").hidden = kept.sent;
  part("after").hidden = !kept.sent;
  part("send").textContent = kept.sent ? "Send the same again" : "Send this";
  const list = part("sent-list");
  list.replaceChildren();
  form.questions.forEach((question, place) => {
    const row = document.createElement("div");
    const [asked, told] = [document.createElement("dt"), document.createElement("dd")];
    asked.textContent = question.text;
    told.textContent = says(question, kept.report.answers[place]);
    row.append(asked, told);
    list.append(row);
  });
  part("sent-json").textContent = JSON.stringify(kept.report);
}

async function send() {
  const [button, words] = [part("send"), part("outcome")];
  button.disabled = true;
  words.className = "";
  words.textContent = "Sending.";
  try {
    const answer = await fetch("reports", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(kept.report),
      credentials: "omit",
    });
    if (answer.status !== 201 && answer.status !== 409) {
      const { error } = await answer.json();
      throw new Error(error.what + ". " + error.fix + ".");
    }
    remember({ ...kept, sent: true });
    show();
    words.className = "good";
    words.textContent = answer.status === 201 ? "Thank you. It is counted." : "It is there already, and counts once.";
  } catch (problem) {
    words.className = "refusal";
    words.textContent = problem instanceof TypeError ? "The server did not answer. Try again in a moment." : problem.message;
  } finally {
    button.disabled = false;
  }
}

part("randomize").addEventListener("click", draw);
part("send").addEventListener("click", send);
part("randomize").disabled = false;
document.documentElement.classList.add("js");
if (kept) show();
main.dataset.ready = "yes";
