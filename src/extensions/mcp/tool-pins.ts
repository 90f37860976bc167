import { readFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import { errorCode } from "../../core/errors.ts";
import { replaceFile } from "../../platform/safe-files.ts";
import type { OfferedTool } from "./tool-catalogue.ts";
import { makeFolder } from "../../platform/folders.ts";

/** What a server last said about each of its tools: a hash, stored in the user's state. */

const MOST = 2000;
const form = z.strictObject({ form: z.literal(1), tools: z.record(z.string(), z.string()) });

export interface Compared {
  /** The description has changed. */
  readonly changed: readonly OfferedTool[];
  /** New tools; empty if nothing was known about the server. */
  readonly added: readonly OfferedTool[];
}

export class ToolPins {
  readonly #file: string;
  #known: Readonly<Record<string, string>> | undefined;
  #written: Promise<void> = Promise.resolve();

  constructor(file: string) {
    this.#file = file;
    this.#known = read(file);
  }

  compare(tools: readonly OfferedTool[]): Compared {
    const known = this.#known;
    if (known === undefined) return { changed: [], added: [] };
    const isKnown = ({ own }: OfferedTool): boolean => Object.hasOwn(known, own);
    return {
      changed: tools.filter((tool) => isKnown(tool) && known[tool.own] !== tool.hash),
      added: tools.filter((tool) => !isKnown(tool)),
    };
  }

  /** Records the tools as they are now. A removed tool stays known: it may return in another form. */
  keep(tools: readonly OfferedTool[]): Promise<void> {
    const now = tools.map(({ own, hash }) => [own, hash] as const);
    const before = Object.entries(this.#known ?? {}).filter(
      ([own]) => !tools.some((tool) => tool.own === own),
    );
    const known = Object.fromEntries([...before, ...now].slice(-MOST));
    if (JSON.stringify(known) === JSON.stringify(this.#known)) return this.#written;
    this.#known = known;
    this.#written = this.#written.catch(() => undefined).then(() => this.#write(known));
    return this.#written;
  }

  /** Resolves when everything was stored, or storing has failed. */
  async settled(): Promise<void> {
    await this.#written.catch(() => undefined);
  }

  async #write(known: Readonly<Record<string, string>>): Promise<void> {
    makeFolder(path.dirname(this.#file));
    const text = `${JSON.stringify({ form: 1, tools: known })}\n`;
    await replaceFile(this.#file, text, {
      mode: 0o600,
      aside: `${this.#file}.${process.pid}.new`,
      lasts: "name",
    });
  }
}

/** If the file is unreadable, nothing is known: then every tool counts as new. */
function read(file: string): Readonly<Record<string, string>> | undefined {
  try {
    return form.parse(JSON.parse(readFileSync(file, "utf8"))).tools;
  } catch (thrown) {
    return errorCode(thrown) === "ENOENT" ? undefined : {};
  }
}
