// What a survey, or several, cost together, in words that are rounded up. The command says the same of the same epsilons:
// tests/local/survey_bounds.json holds it for both. Ratios of integers are exact; only where the sum is irrational are
// doubles used, and then enlarged by more than they can be off.
const SLACK = 1e-10; // above the error of a few sums, logarithms and powers in doubles, below what is shown

// A decimal or a ratio, as the form writes it: above and under the line, exactly.
export function ratio(text) {
  const [above, under = "1"] = text.split("/");
  const [whole, digits = ""] = above.split(".");
  return [BigInt(whole + digits), BigInt(under) * 10n ** BigInt(digits.length)];
}

// The sum of epsilons, each so often: `plain` is a ratio, and so is `factor`, whose logarithm is added to it. Nothing
// where one of them is not known.
export function total(parts) {
  let [plain, factor] = [[0n, 1n], [1n, 1n]];
  for (const { epsilons, times } of parts) {
    if (!Array.isArray(epsilons) || !Number.isSafeInteger(times) || times < 0 || times > 1000) return undefined;
    for (const text of epsilons.map(String)) {
      const logarithm = /^ln [0-9.]+$/.test(text);
      if (!logarithm && !/^[0-9.]+(\/[0-9]+)?$/.test(text)) return undefined;
      let [a, b] = ratio(logarithm ? text.slice(3) : text);
      if (a <= 0n || b <= 0n) return undefined;
      if (logarithm) factor = [factor[0] * a ** BigInt(times), factor[1] * b ** BigInt(times)];
      else plain = reduced(plain[0] * b + BigInt(times) * a * plain[1], plain[1] * b);
    }
  }
  return { plain, factor: reduced(...factor) };
}

// The sum, rounded up to four digits.
export function epsilonText({ plain, factor }) {
  const exact = factor[0] === factor[1];
  const [a, b] = exact ? plain : above(quotient(plain) + logarithm(factor));
  return decimal(...rounded(a, b, Math.max(4, (a / b).toString().length)), "");
}

// e to the sum, rounded up: to three digits or a whole number, from a million on to two digits.
export function timesText({ plain, factor }) {
  if (plain[0] !== 0n) {
    const power = quotient(plain) + logarithm(factor);
    if (power > 600) return scientific(power / Math.LN10); // no double holds it
    return factorText(...above(Math.exp(power)));
  }
  return factorText(...factor);
}

function factorText(a, b) {
  if (a < 1000000n * b) return decimal(...rounded(a, b, Math.max(3, (a / b).toString().length)), ",");
  const [found] = rounded(a, b, 2);
  const digits = found.toString();
  return digits.length <= 15 ? decimal(found, 0, ",") : `${digits[0]}.${digits[1]}e+${digits.length - 1}`;
}

// Ten to a power that is not an integer, with two digits.
function scientific(power) {
  const enlarged = power * (1 + SLACK);
  let exponent = Math.floor(enlarged);
  let first = Math.ceil(10 ** (enlarged - exponent + 1));
  if (first === 100) [first, exponent] = [10, exponent + 1];
  return `${String(first)[0]}.${String(first)[1]}e+${exponent}`;
}

// A positive double as a ratio, enlarged.
function above(value) {
  const scale = 2n ** 60n;
  const [whole, part] = [Math.floor(value), value - Math.floor(value)];
  const exact = BigInt(whole) * scale + BigInt(Math.ceil(part * 2 ** 60));
  return [exact + BigInt(Math.ceil(value * SLACK * 2 ** 60)), scale];
}

// The least number of so many digits that is not below a/b: an integer, and how many of its digits stand behind the point.
function rounded(a, b, digits) {
  let places = digits - 1;
  for (let left = a / b; left >= 10n; left /= 10n) places -= 1;
  for (let scaled = a * 10n; scaled < b && a > 0n; scaled *= 10n) places += 1;
  if (a < b && a > 0n) places += 1;
  const up = (above, under) => (above + under - 1n) / under;
  return places >= 0 ? [up(a * 10n ** BigInt(places), b), places] : [up(a, b * 10n ** BigInt(-places)) * 10n ** BigInt(-places), 0];
}

// An integer with a point before its last digits, without zeros at the end, and with a mark between thousands.
function decimal(number, places, mark) {
  const digits = number.toString().padStart(places + 1, "0");
  const whole = digits.slice(0, digits.length - places).replace(/\B(?=(\d{3})+$)/g, mark);
  const part = places ? digits.slice(-places).replace(/0+$/, "") : "";
  return part ? `${whole}.${part}` : whole;
}

function reduced(a, b) {
  let [x, y] = [a, b];
  while (y) [x, y] = [y, x % y];
  return x ? [a / x, b / x] : [0n, 1n];
}

// Doubles of ratios whose parts no double may hold.
function quotient([a, b]) {
  return Number((a * 2n ** 80n) / b) / 2 ** 80;
}

function logarithm([a, b]) {
  const shift = BigInt(Math.max(0, (a / b).toString(2).length - 100));
  return Math.log(quotient([a >> shift, b])) + Number(shift) * Math.LN2;
}
