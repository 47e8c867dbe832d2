// What this browser keeps, at this address, and never a true answer. Of each survey its name, its prices and the report
// that was drawn; and of each answer that was ever drawn an entry of its own. Entries are only added, each under a random
// name that has nothing to do with the report, so no window can overwrite what another one wrote down. A survey that was
// changed is another one, so all of them are looked through before anyone is asked.
import { epsilonText, timesText, total } from "./survey_bounds.js";

const NAMES = "tacit-survey-";
const ANSWERS = "tacit-answer-";
const LOCK = "tacit-survey";

function found(key) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? {};
  } catch {
    return {};
  }
}

function write(key, state) {
  try {
    localStorage.setItem(key, JSON.stringify(state));
    return true;
  } catch {
    return false;
  }
}

function keys(start) {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(start));
  } catch {
    return [];
  }
}

function aboutOf(form) {
  return { id: form.id, title: form.title, epsilons: form.questions.map((question) => question.epsilon) };
}

// One window at a time, where the browser can say so. What is done reads before it writes in any case.
export async function exclusively(action) {
  let begun = false;
  const once = () => {
    begun = true;
    return action();
  };
  try {
    if (navigator.locks) return await navigator.locks.request(LOCK, once);
  } catch (problem) {
    if (begun) throw problem; // not the lock's
  }
  return action();
}

// Whether a change of storage is about surveys.
export function concerns(key) {
  return key !== null && (key.startsWith(NAMES) || key.startsWith(ANSWERS));
}

// The report that is kept for this survey, if there is one.
export function recall(form) {
  const { report, sent = false } = found(NAMES + form.digest);
  return report?.survey === form.digest ? { report, sent } : { report: null, sent: false };
}

// Write down that an answer was drawn, and then what; whether the browser keeps both.
export function keep(form, report) {
  const name = crypto.getRandomValues(new BigUint64Array(2)).reduce((text, word) => text + word.toString(16), "");
  const { before = 0 } = found(NAMES + form.digest);
  const counted = write(`${ANSWERS}${form.digest}-${name}`, aboutOf(form));
  return write(NAMES + form.digest, { ...aboutOf(form), before, report, sent: false, counted }) && counted;
}

// That a report was sent, unless another one stands there by now, or none. What is kept then.
export function markSent(form, report) {
  const state = found(NAMES + form.digest);
  if (state.report?.id === report.id) write(NAMES + form.digest, { ...state, sent: true });
}

// Forget a report, unless another one stands there by now. That somebody answered stays.
export function forget(form, report) {
  const { before = 0, counted = false, report: kept } = found(NAMES + form.digest);
  if (kept?.id === report.id) write(NAMES + form.digest, { ...aboutOf(form), before: before + Number(!counted) });
}

// How often a survey was answered: an entry for each, and what older pages counted in other ways.
function timesOf(digest) {
  const { report, before = 0, counted = false } = found(NAMES + digest);
  return keys(`${ANSWERS}${digest}-`).length + before + Number(Boolean(report) && !counted);
}

// All other surveys that were answered here, with how often.
function others(form) {
  const digests = [
    ...keys(NAMES).map((key) => key.slice(NAMES.length)),
    ...keys(ANSWERS).map((key) => key.slice(ANSWERS.length).split("-")[0]),
  ];
  return [...new Set(digests)]
    .filter((digest) => digest !== form.digest)
    .map((digest) => ({
      ...found(keys(`${ANSWERS}${digest}-`)[0]),
      ...found(NAMES + digest),
      times: Math.max(1, timesOf(digest)),
    }));
}

// What must be said before anyone is asked: the words, and whether they need a tick. Nothing where this is the first.
export function warning(form) {
  const [own, rest] = [timesOf(form.digest), others(form)];
  const versions = rest.filter(({ id = form.id }) => id === form.id); // one without an id may be this one
  const count = rest.length + Number(own > 0);
  if (count === 0) return null;
  const answers = rest.reduce((sum, { times }) => sum + times, own);
  const { epsilons } = aboutOf(form);
  const price = total([{ epsilons, times: 1 }]);
  const known = rest.filter((each) => total([each]));
  const together = total([{ epsilons, times: 1 + own }, ...known]) ?? price;
  const bound = known.length === rest.length && own < 1000 ? "at most" : "more than";
  const words = [
    `${count} ${count > 1 ? "surveys were" : "survey was"} answered from this browser at this address` +
      `${answers > count ? `, ${answers} times in all` : ""}${named(own ? form : [...versions, ...rest][0], count)}.`,
    own
      ? "Somebody has answered this very survey here."
      : versions.length
        ? "This one is a changed version of it, with new coins: two reports tell more than one."
        : "This one is another.",
    `If that was you, answering costs epsilon ${epsilonText(price)} more, together ${epsilonText(together)}:`,
    `whoever sees all of it can become ${bound} ${timesText(together)} times surer of anything you answered.`,
  ];
  return { words: words.join(" "), tick: versions.length > 0 || own > 0 };
}

function named({ title }, count) {
  return title ? `, ${count > 1 ? "one of them " : ""}named “${String(title).slice(0, 80)}”` : "";
}
