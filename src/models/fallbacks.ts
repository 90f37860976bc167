/** Which models take no tools; a caller may keep it beyond one run. */
export interface Fallbacks {
  has(model: string): boolean;
  add(model: string, reason: string): void;
}

export class RememberedFallbacks implements Fallbacks {
  readonly #models = new Map<string, string>();

  has(model: string): boolean {
    return this.#models.has(model);
  }

  add(model: string, reason: string): void {
    this.#models.set(model, reason);
  }
}
