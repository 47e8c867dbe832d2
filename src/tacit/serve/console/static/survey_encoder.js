// Randomizes answers by integer thresholds out of 2^64, from random words. The Python client uses the same words in the
// same way: the same bytes give the same report. Nothing here touches the page or the network.
import { ratio } from "./survey_bounds.js";

// The browser's cryptographic source.
export const system = { word: () => crypto.getRandomValues(new BigUint64Array(1))[0] };

// Given bytes instead, eight to a word, the lowest first. For tests.
export function replay(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let place = 0;
  return {
    word() {
      place += 8;
      return view.getBigUint64(place - 8, true);
    },
  };
}

// An integer from 0 to n - 1, each equally likely: as many bits as n - 1 has, drawn until they are below n.
function below(n, source) {
  if (n === 1) return 0;
  const shift = BigInt(64 - (n - 1).toString(2).length);
  for (;;) {
    const drawn = Number(source.word() >> shift);
    if (drawn < n) return drawn;
  }
}

// True with probability chance/2^64, exactly.
function coin(chance, source) {
  return source.word() < BigInt(chance);
}

function check(holds) {
  if (!holds) throw new RangeError("this is no answer to the question");
}

// What is sent for a true answer: the number of an option, digits for several, the place in a range for a number.
export function encode(question, truth, source) {
  const options = question.options?.length;
  if (question.kind === "several") {
    check(typeof truth === "string" && /^[01]+$/.test(truth) && truth.length === options);
    check(truth.replaceAll("0", "").length <= question.most);
    return [...truth].map((bit) => Number(bit) ^ Number(coin(question.lie, source))).join("");
  }
  const last = question.kind === "number" ? question.steps : options - 1;
  check(Number.isInteger(truth) && truth >= 0 && truth <= last);
  if (question.kind === "number") {
    const top = below(question.steps, source) < truth;
    return Number(top !== coin(question.lie, source));
  }
  const turned = coin(question.lie, source);
  const drawn = below(options - 1, source); // drawn whether it is needed or not
  return turned ? drawn + Number(drawn >= truth) : truth;
}

// The report of one person: an id, then each question's coins, in order.
export function respond(form, truths, source = system) {
  check(truths.length === form.questions.length);
  const high = source.word();
  const id = ((high << 64n) | source.word()).toString(16).padStart(32, "0");
  const answers = form.questions.map((question, place) => encode(question, truths[place], source));
  return { survey: form.digest, id, answers };
}

// A decimal or a ratio, as the form writes it, as a double.
export function number(text) {
  const [above, under = "1"] = text.split("/");
  return Number(above) / Number(under);
}

// The place in a range that is nearest to what was typed, the upper one of two; undefined where there is none. Integers
// all through, so that halves of steps go where Python puts them.
export function placeOf(question, typed) {
  if (!/^-?[0-9]{0,30}(\.[0-9]{0,30})?$/.test(typed) || !/[0-9]/.test(typed)) return undefined;
  const [value, lower, upper, step] = [typed, question.lower, question.upper, question.step].map(ratio);
  const minus = ([a, b], [c, d]) => [a * d - c * b, b * d];
  const [above, under] = minus(value, lower);
  if (above < 0n || minus(upper, value)[0] < 0n) return undefined;
  return Number((2n * above * step[1] + under * step[0]) / (2n * under * step[0])); // floor(distance/step + 1/2)
}

// The number at a place, to read.
export function valueAt(question, place) {
  return legible(number(question.lower) + place * number(question.step));
}

// Twelve digits, which no sum of doubles spoils.
export function legible(value) {
  return String(Number(value.toPrecision(12)));
}

// What a randomized answer looks like to whoever receives it.
export function says(question, sent) {
  if (question.kind === "number") {
    return legible(number([question.lower, question.upper][sent])) + (question.unit ? " " + question.unit : "");
  }
  if (question.kind !== "several") return question.options[sent];
  return question.options.filter((_, place) => sent[place] === "1").join(", ") || "none of them";
}
