// What this browser keeps, at this address: of each survey its name, its prices and the report that was drawn, never a
// true answer. A survey that was changed is another one, so all of them are looked through before anyone is asked.
import { number } from "./survey_encoder.js";

const NAMES = "tacit-survey-";

function found(key) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? {};
  } catch {
    return {};
  }
}

// What is kept of this survey: its report, if there is one, and how many people said that an earlier one was not theirs.
export function recall(form) {
  const { report, sent = false, before = 0 } = found(NAMES + form.digest);
  return report?.survey === form.digest ? { report, sent, before } : { report: null, sent: false, before };
}

// Whether the browser keeps it.
export function remember(form, { report, sent, before }) {
  const about = { id: form.id, title: form.title, epsilons: form.questions.map((question) => question.epsilon) };
  const state = report ? { ...about, before, report, sent } : { ...about, before };
  try {
    localStorage.setItem(NAMES + form.digest, JSON.stringify(state));
    return true;
  } catch {
    return false;
  }
}

// What must be said before anyone is asked: the words, and whether they need a tick. Nothing where this is the first.
export function warning(form) {
  const { before } = recall(form);
  const others = keys().filter((key) => key !== NAMES + form.digest).map(found);
  const versions = others.filter(({ id = form.id }) => id === form.id); // one without an id may be this one
  const count = others.length + Number(before > 0);
  if (count === 0) return null;
  const price = priceOf(form.questions.map((question) => question.epsilon));
  const paid = others.map(({ epsilons }) => priceOf(epsilons));
  const together = paid.reduce((sum, each) => sum + (each || 0), price * (1 + before));
  const bound = paid.every(Number.isFinite) ? "at most" : "more than";
  const words = [
    `${count} ${count > 1 ? "surveys were" : "survey was"} answered from this browser at this address` +
      `${named(before ? form : [...versions, ...others][0], count)}.`,
    before
      ? "Somebody has answered this very survey here."
      : versions.length
        ? "This one is a changed version of it, with new coins: two reports tell more than one."
        : "This one is another.",
    `If that was you, answering costs epsilon ${legible(price)} more, together ${legible(together)}:`,
    `whoever sees all of it can become ${bound} ${legible(Math.exp(together))} times surer of anything you answered.`,
  ];
  return { words: words.join(" "), tick: versions.length > 0 || before > 0 };
}

function named({ title }, count) {
  return title ? `, ${count > 1 ? "one of them " : ""}named “${String(title).slice(0, 80)}”` : "";
}

function keys() {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(NAMES));
  } catch {
    return [];
  }
}

// The sum of epsilons; no number where they are not known.
function priceOf(epsilons) {
  const each = (text) => (text.startsWith("ln ") ? Math.log(number(text.slice(3))) : number(text));
  return Array.isArray(epsilons) ? epsilons.reduce((sum, text) => sum + each(String(text)), 0) : NaN;
}

// A factor or a price with three digits, rounded up.
function legible(value) {
  if (value >= 1e6) return value.toExponential(1);
  const scale = 10 ** Math.max(0, 2 - Math.floor(Math.log10(value)));
  return (Math.ceil(value * scale - 1e-9) / scale).toLocaleString("en-US", { maximumFractionDigits: 9 });
}
