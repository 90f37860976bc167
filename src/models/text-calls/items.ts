import type { Found } from "./reading.ts";

/** A reply as a row of what is shown, what is hidden, and calls of which some may turn out to be shown. */
export type Item =
  | { readonly kind: "prose"; readonly from: number; to: number }
  | { readonly kind: "hidden"; readonly from: number; readonly to: number }
  | {
      readonly kind: "calls";
      readonly from: number;
      readonly to: number;
      readonly found: readonly Found[];
      /** Nothing but its shape says that it is a call: it must end the reply. */
      readonly weak: boolean;
    };

export class Items {
  readonly list: Item[] = [];
  /** Some call came already: an answer of a tool that follows is invented. */
  called = false;

  prose(from: number, to: number): void {
    if (from >= to) return;
    const last = this.list.at(-1);
    if (last?.kind === "prose" && last.to === from) last.to = to;
    else this.list.push({ kind: "prose", from, to });
  }

  add(item: Item): void {
    if (item.kind === "calls") this.called = true;
    this.list.push(item);
  }

  /** All so far was thought. */
  forget(): void {
    this.list.length = 0;
    this.called = false;
  }
}
