/*
 * A small model that has lost its thread repeats itself until it is stopped: a word, a paragraph, or a list of twenty
 * files. Only exact repetitions count.
 */

/** Least characters at the end of a text that have to repeat; there must be three rounds. */
const MIN_REPEATED = 1500;
const ROUNDS = 3;
/** Characters that are examined; the longest round is a third of them. */
const EXAMINED = 6000;

export interface Circle {
  /** Where the first round begins. */
  readonly from: number;
  /** Characters of one round. */
  readonly period: number;
}

/** The repetition that a text ends in. */
export function circleIn(text: string): Circle | undefined {
  const period = periodOf(text.slice(-EXAMINED));
  if (period === undefined) return undefined;
  let from = text.length - period;
  while (from > 0 && text[from - 1] === text[from - 1 + period]) from -= 1;
  return { from, period };
}

/** The text without all rounds but the first. */
export function withoutCircle(text: string): string {
  const circle = circleIn(text);
  return circle === undefined ? text : `${text.slice(0, circle.from + circle.period)}…`.toWellFormed();
}

/** The shortest period, by comparing the end with the text one period before it (the Z function, from the end). */
function periodOf(end: string): number | undefined {
  const { length } = end;
  const at = (place: number): string | undefined => end[length - 1 - place];
  const same = new Uint16Array(length);
  let [left, right] = [0, 0];
  for (let period = 1; period * ROUNDS <= length; period += 1) {
    let count = period < right ? Math.min(right - period, same[period - left] ?? 0) : 0;
    while (period + count < length && at(count) === at(period + count)) count += 1;
    same[period] = count;
    if (period + count > right) [left, right] = [period, period + count];
    if (period + count >= Math.max(MIN_REPEATED, ROUNDS * period)) return period;
  }
  return undefined;
}

/** Characters after which the text is examined again. */
const LOOK_AFTER = 500;

/** Finds repetitions in a text that comes in pieces. */
export class Circles {
  #end = "";
  #unseen = 0;

  push(text: string): boolean {
    this.#end = (this.#end + text).slice(-EXAMINED);
    this.#unseen += text.length;
    if (this.#unseen < LOOK_AFTER || this.#end.length < MIN_REPEATED) return false;
    this.#unseen = 0;
    return periodOf(this.#end) !== undefined;
  }
}
