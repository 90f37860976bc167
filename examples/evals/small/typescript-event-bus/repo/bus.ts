export type Listener = (event: string) => void;

export class Bus {
  #listeners: Listener[] = [];

  /** Returns what removes it again. */
  on(listener: Listener): () => void {
    this.#listeners.push(listener);
    return () => {
      this.#listeners.splice(this.#listeners.indexOf(listener), 1);
    };
  }

  emit(event: string): void {
    for (const listener of this.#listeners) listener(event);
  }
}
