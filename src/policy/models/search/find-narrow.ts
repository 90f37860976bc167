import type { Arg } from "../model.ts";
import { NAMING, NARROWING } from "./find-words.ts";

/** What of the files below a start the expression has left over: all (null), or those of some names. */
export type Left = readonly string[] | null;

interface Group {
  /** What was left over before it. */
  readonly before: Left;
  readonly negated: boolean;
  /** What the alternatives so far leave over; undefined before the first one ends. */
  ended: Left | undefined;
}

/** Follows an expression from left to right: before each action it knows what that acts on. A guess, in favour of more. */
export class Narrowing {
  left: Left = null;
  private negated = false;
  private readonly groups: Group[] = [{ before: null, negated: false, ended: undefined }];

  not(): void {
    this.negated = !this.negated;
  }

  open(): void {
    this.groups.push({ before: this.left, negated: this.negated, ended: undefined });
    this.negated = false;
  }

  /** `-o` and `,`: what follows starts again from what was left before the group. */
  or(): void {
    const group = this.groups.at(-1);
    if (group === undefined) return;
    group.ended = joined(group.ended, this.left);
    this.left = group.before;
    this.negated = false;
  }

  /** Answers false where there is nothing to close. */
  close(): boolean {
    const group = this.groups.pop();
    if (group === undefined || this.groups.length === 0) return false;
    this.left = group.negated ? group.before : joined(group.ended, this.left);
    this.negated = false;
    return true;
  }

  get closed(): boolean {
    return this.groups.length === 1;
  }

  test(name: string, value: Arg | undefined): void {
    const { negated } = this;
    this.negated = false;
    if (negated) return;
    const names = NARROWING.has(name) || name.startsWith("-newer") ? SOME : byName(name, value);
    if (names !== null && (this.left === null || this.left === SOME)) this.left = names;
  }
}

/** Some files, by no name that is known. */
const SOME: Left = ["*found*"];
const MOST_NAMES = 8;

/** The name that a pattern is about, in the letters of names that are judged: of one for paths, all but what stands for any folder. */
function byName(name: string, value: Arg | undefined): Left {
  if (!NAMING.has(name) || value === undefined || !/[A-Za-z0-9]/.test(value.value)) return null;
  const plain = name.endsWith("regex")
    ? value.value.replaceAll(".*", "*").replaceAll(/\\(.)/g, "$1").replace(/\$$/, "")
    : value.value;
  const about = plain.replace(/^(?:(?:\.|\*+)\/)+/, "");
  if (!/[A-Za-z0-9]/.test(about) || /[()|+\\]/.test(about)) return SOME;
  return [name.startsWith("-i") ? about.toLowerCase() : about];
}

function joined(one: Left | undefined, other: Left): Left {
  if (one === undefined || one === other) return other;
  if (one === null || other === null) return null;
  return one.length + other.length > MOST_NAMES ? SOME : [...one, ...other];
}
