import type { Settings } from "../../config/schema.ts";
import { SearchVectors } from "./search-vectors.ts";

/** The vectors of a run's searches: what was learned of a model counts for all of them, until the settings name another. */
export class RunVectors implements Disposable {
  readonly #origins: Readonly<Record<string, string>>;
  #held: { readonly of: string; readonly vectors: SearchVectors } | undefined;

  constructor(origins: Readonly<Record<string, string>>) {
    this.#origins = origins;
  }

  for(settings: Settings): SearchVectors {
    const { provider, base_url, embed_model } = settings;
    const of = JSON.stringify([provider, base_url, embed_model]);
    if (this.#held?.of === of) return this.#held.vectors;
    this[Symbol.dispose]();
    const vectors = new SearchVectors({ settings, origins: this.#origins, note: () => undefined });
    this.#held = { of, vectors };
    return vectors;
  }

  [Symbol.dispose](): void {
    this.#held?.vectors[Symbol.dispose]();
    this.#held = undefined;
  }
}
