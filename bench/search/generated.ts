import type { Chunk, StoredFile } from "../../src/search/search-store.ts";

const SYLLABLES =
  "ka re to mi lo da ser pat con ver ti ex ra bu len for sta qu in or ma ne pli gra sho".split(" ");
const WORDS = 6000;
/** Identifiers of two words in a repository; each file uses few of them over and over. */
const COMPOUNDS = 12_000;
const OWN_COMPOUNDS = 40;
const CHUNKS_OF_FILE = 10;
const LINES = 30;

/** Numbers that look random and are the same in every run. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  next(): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#state / 2 ** 32;
  }

  below(most: number): number {
    return Math.floor(this.next() * most);
  }
}

/** Words distributed as in code: few are everywhere, most are rare. */
export class Prose {
  readonly #words: readonly string[];
  readonly #compounds: readonly string[];
  readonly #dice: Dice;
  #own: readonly string[] = [];

  constructor(seed: number) {
    this.#dice = new Dice(seed);
    const dice = new Dice(99);
    this.#words = Array.from({ length: WORDS }, () =>
      Array.from({ length: 2 + dice.below(3) }, () => SYLLABLES[dice.below(SYLLABLES.length)]).join(""),
    );
    const word = (): string => this.#words[Math.floor(WORDS ** dice.next()) - 1] ?? "";
    this.#compounds = Array.from({ length: COMPOUNDS }, () => {
      const second = word();
      return word() + second.slice(0, 1).toUpperCase() + second.slice(1);
    });
    this.nextFile();
  }

  nextFile(): void {
    this.#own = Array.from(
      { length: OWN_COMPOUNDS },
      () => this.#compounds[this.#dice.below(COMPOUNDS)] ?? "",
    );
  }

  /** Zipf's law: returns the word of rank n with a probability of about 1/n, from rank `from` on. */
  word(from = 1): string {
    return this.#words[Math.floor(from * (WORDS / from) ** this.#dice.next()) - 1] ?? "";
  }

  identifier(): string {
    if (this.#dice.next() < 0.6) return this.word();
    return this.#own[this.#dice.below(OWN_COMPOUNDS)] ?? "";
  }

  line(): string {
    const words = Array.from({ length: 3 + this.#dice.below(5) }, () => this.identifier());
    return `  ${words[0]}.${words.slice(1).join("(")}${")".repeat(words.length - 2)};`;
  }
}

/** Generates `chunks` chunks of some 1,300 letters, ten per file. */
export function* generatedFiles(chunks: number, seed = 1): Generator<StoredFile> {
  const prose = new Prose(seed);
  for (let file = 0; file * CHUNKS_OF_FILE < chunks; file += 1) {
    const path = `src/${prose.word()}/${prose.word()}/${prose.identifier()}${file}.ts`;
    yield generatedFile(path, file, prose);
  }
}

export function generatedFile(path: string, file: number, prose: Prose): StoredFile {
  prose.nextFile();
  const chunks = Array.from({ length: CHUNKS_OF_FILE }, (_, at): Chunk => {
    const symbol = prose.identifier();
    const lines = Array.from({ length: LINES }, () => prose.line());
    return {
      id: `00000000-0000-4000-8000-${(file * CHUNKS_OF_FILE + at).toString(16).padStart(12, "0")}`,
      path,
      start: 1 + at * (LINES + 2),
      end: (at + 1) * (LINES + 2),
      kind: "function",
      symbol,
      text: `function ${symbol}() {\n${lines.join("\n")}\n}\n`,
      language: "typescript",
      role: "source",
      hash: (file * CHUNKS_OF_FILE + at).toString(16).padStart(64, "0"),
      trust: "trusted",
    };
  });
  return { path, hash: file.toString(16).padStart(64, "0"), chunks };
}

/** This many of the commonest words act as stop words: questions do not contain them. */
const NOT_ASKED = 20;

/** Questions of twenty words, common and rare. */
export function generatedQueries(count: number): readonly string[] {
  const prose = new Prose(7);
  return Array.from({ length: count }, () =>
    Array.from({ length: 20 }, () => prose.word(NOT_ASKED + 1)).join(" "),
  );
}
