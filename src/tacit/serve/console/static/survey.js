// The survey's page. True answers stay in the inputs: they are read once, randomized, and cleared. What is drawn is kept
// in this browser before it is shown, so that nobody tosses again until the coins please them, and a second visit sends
// the same report: it tells nothing more. Nothing is sent by a click that came before what it sends could be read.
import { legible, placeOf, respond, says, valueAt } from "./survey_encoder.js";
import { concerns, exclusively, forget as unremember, keep, markSent, recall, warning } from "./survey_memory.js";

const READING = 700; // milliseconds after a report is shown, in which it is not sent: longer than a double click
const main = document.getElementById("main");
const form = JSON.parse(main.dataset.form);
const part = (name) => document.getElementById(name);
const boxes = [...document.querySelectorAll(".question")];
let kept = recall(form);
let returned = kept.report !== null; // and did not just toss
let shown = -Infinity;

// One after the other, and none while another window is at it.
let waiting = 0;
let turn = Promise.resolve();
function alone(action) {
  waiting += 1;
  main.dataset.busy = "yes";
  const begin = () => exclusively(action);
  turn = turn.then(begin, begin).finally(() => {
    waiting -= 1;
    if (waiting === 0) delete main.dataset.busy;
  });
}

// What this browser answered before is said first. Whether anything new was said.
function warn() {
  const found = warning(form);
  const words = found?.words ?? "";
  const fresh = words !== part("earlier-words").textContent;
  part("earlier").hidden = !found;
  part("again").hidden = !found?.tick;
  if (fresh) {
    part("earlier-words").textContent = words;
    part("agreed").checked = false;
  }
  return fresh;
}

// The true answer in one question's inputs; undefined where there is none.
function truthOf(question, box) {
  if (question.kind === "number") {
    return placeOf(question, box.querySelector("input").value.trim());
  }
  const inputs = [...box.querySelectorAll("input")];
  if (question.kind === "several") {
    const digits = inputs.map((input) => Number(input.checked)).join("");
    return digits.replaceAll("0", "").length <= question.most ? digits : undefined;
  }
  const place = inputs.findIndex((input) => input.checked);
  return place < 0 ? undefined : place;
}

// What becomes of a number: whether it is one, and where it lies between two steps, which of them counts.
function hold(question, box) {
  const [input, rounded] = [box.querySelector("input"), box.querySelector(".rounded")];
  const place = truthOf(question, box);
  box.querySelector(".missing").hidden = place !== undefined || (input.value === "" && !input.validity.badInput);
  const value = place === undefined ? "" : valueAt(question, place);
  rounded.textContent = value === "" || value === legible(Number(input.value)) ? "" : `This counts as ${value}, the nearest step.`;
}

function draw() {
  kept = recall(form); // another window may have tossed meanwhile
  if (kept.report) {
    clear();
    show();
    part("drawn-head").focus();
    return;
  }
  if (warn()) {
    part("earlier").scrollIntoView({ block: "center" });
    return;
  }
  const truths = form.questions.map((question, place) => truthOf(question, boxes[place]));
  boxes.forEach((box, place) => {
    box.querySelector(".missing").hidden = truths[place] !== undefined;
  });
  const agreed = part("again").hidden || part("agreed").checked;
  part("unagreed").hidden = agreed;
  if (!agreed) {
    part("agreed").focus();
    return;
  }
  const first = truths.indexOf(undefined);
  if (first >= 0) {
    boxes[first].querySelector("input").focus();
    return;
  }
  alone(() => toss(truths));
}

// The coins, unless another window tossed meanwhile, or answered what must be told first.
function toss(truths) {
  kept = recall(form);
  if (!kept.report) {
    if (warn()) {
      part("earlier").scrollIntoView({ block: "center" });
      return;
    }
    const report = respond(form, truths);
    if (!keep(form, report)) part("forgetful").hidden = false; // a second answer would be a second report
    kept = { report, sent: false };
  }
  clear();
  show();
  part("drawn-head").focus();
}

function clear() {
  for (const input of document.querySelectorAll(".question input")) {
    if (input.type === "radio" || input.type === "checkbox") input.checked = false;
    else input.value = "";
  }
  for (const note of document.querySelectorAll(".rounded")) note.textContent = "";
}

// The report, and its button, which is of no use until the report can have been read.
function show() {
  fill();
  const now = performance.now();
  shown = now;
  part("send").disabled = true;
  setTimeout(() => {
    if (shown === now) part("send").disabled = false; // else another report is shown since
  }, READING);
}

function fill() {
  for (const name of ["answering", "earlier", "sure"]) part(name).hidden = true;
  part("drawn").hidden = false;
  part("another").hidden = !(kept.sent || returned);
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
  const [button, words, state] = [part("send"), part("outcome"), recall(form)];
  if (state.report && state.report.id !== kept.report.id) {
    kept = state; // another window's: it is shown first
    show();
    return;
  }
  const { report } = kept;
  button.disabled = true;
  words.className = "";
  words.textContent = "Sending.";
  try {
    const answer = await fetch("reports", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(report),
      credentials: "omit",
    });
    if (answer.status !== 201 && answer.status !== 409) {
      const { error } = await answer.json();
      throw new Error(`${error.what}. ${error.fix}.`.slice(0, 500));
    }
    await exclusively(() => markSent(form, report));
    if (kept.report?.id !== report.id) return; // forgotten meanwhile
    kept = { report, sent: true };
    fill();
    words.className = "good";
    words.textContent = answer.status === 201 ? "Thank you. It is counted." : "It is there already, and counts once.";
  } catch (problem) {
    words.className = "refusal";
    words.textContent = problem instanceof TypeError ? "The server did not answer. Try again in a moment." : problem.message;
  } finally {
    button.disabled = false;
  }
}

// Someone else at the same device: the report is forgotten, and only that somebody answered is kept.
function forget() {
  if (kept.report) unremember(form, kept.report);
  kept = recall(form);
  if (kept.report) {
    returned = true; // another window's, which is not the one that was to be forgotten
    show();
  } else ask();
}

function ask() {
  returned = false;
  for (const name of ["sent-list", "sent-json", "outcome"]) part(name).replaceChildren();
  part("drawn").hidden = true;
  part("answering").hidden = false;
  warn();
  part("earlier").focus();
}

// The second click of a double click was meant for what stood there before.
function on(name, action) {
  part(name).addEventListener("click", (event) => {
    if (event.detail <= 1) action();
  });
}

on("randomize", draw);
on("send", () => {
  if (performance.now() - shown >= READING) send();
});
on("another", () => {
  part("sure").hidden = false;
  part("sure").focus();
});
on("keep", () => {
  part("sure").hidden = true;
  part("another").focus();
});
on("forget", () => alone(forget));
form.questions.forEach((question, place) => {
  if (question.kind === "number") boxes[place].addEventListener("change", () => hold(question, boxes[place]));
});
// What another window does is seen here: what it tossed is not tossed again, and what it forgot is not sent from here.
window.addEventListener("storage", ({ key }) => {
  if (!concerns(key) || main.dataset.busy) return;
  const now = recall(form);
  const same = now.report?.id === kept.report?.id;
  if (same && now.sent === kept.sent) {
    if (!now.report) warn();
    return;
  }
  kept = now;
  if (same) fill();
  else if (now.report) {
    returned = true;
    clear();
    show();
  } else ask();
});
part("randomize").disabled = false;
document.documentElement.classList.add("js");
if (kept.report) show();
else warn();
main.dataset.ready = "yes";
