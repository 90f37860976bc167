export class Queue<T> {
  #things: T[] = [];

  put(thing: T): void {
    this.#things.push(thing);
  }

  /** The oldest thing, taken out; undefined when there is none. */
  take(): T | undefined {
    return this.#things.pop();
  }

  get size(): number {
    return this.#things.length;
  }
}
