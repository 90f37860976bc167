import type { CutFile, Piece } from "../words.ts";
import { decoded } from "./decode.ts";
import { languageOf } from "./language.ts";
import { HUGE } from "./limits.ts";
import { sectionMarks } from "./markdown.ts";
import type { Mark } from "./marks.ts";
import { pack } from "./pack.ts";
import { shellMarks } from "./shell.ts";
import { skippedName, skippedText } from "./skip.ts";
import { Syntax } from "./syntax.ts";

export { languageOf, LANGUAGES } from "./language.ts";
export { HUGE, MOST } from "./limits.ts";

/**
 * Cuts files into pieces. The pieces follow each other and together are the decoded text: no gap, no overlap; none is
 * longer than `MOST`. Where a line is longer, it is cut inside, and the pieces share its number. An empty file is cut,
 * and has no pieces. The same bytes at the same path give the same pieces. Never throws, whatever the bytes.
 *
 * A symbol names all that a piece declares, with a comma between; in the middle of a long function it is the function's.
 */
export class Cutter implements Disposable {
  private readonly syntax = new Syntax();

  /** Loads what files like this need, so that the first is no slower than the others. */
  async ready(path: string): Promise<void> {
    await this.syntax.load(languageOf(path));
  }

  async cut(path: string, bytes: Uint8Array): Promise<CutFile> {
    const named = skippedName(path);
    if (named !== undefined) return { kind: "skipped", why: named };
    if (bytes.length > HUGE) return { kind: "skipped", why: "huge" };
    const text = decoded(bytes);
    if (text === undefined) return { kind: "skipped", why: "binary" };
    const language = languageOf(path, text.slice(0, text.indexOf("\n") >>> 0).slice(0, 200));
    const why = skippedText(text, language);
    if (why !== undefined) return { kind: "skipped", why };
    await this.syntax.load(language);
    return { kind: "cut", language, pieces: this.pieces(text, language) };
  }

  /** Grammars that could not be loaded: files of their languages are cut by lines, without symbols. */
  missing(): readonly { readonly grammar: string; readonly why: string }[] {
    return this.syntax.missing();
  }

  [Symbol.dispose](): void {
    this.syntax[Symbol.dispose]();
  }

  private pieces(text: string, language: string): readonly Piece[] {
    const marks = this.marks(text, language);
    return pack(text, marks === undefined || marks.length === 0 ? WHOLE : marks);
  }

  private marks(text: string, language: string): readonly Mark[] | undefined {
    if (language === "markdown") return sectionMarks(text);
    return language === "bash" ? shellMarks(text) : this.syntax.marks(text, language);
  }
}

const WHOLE: readonly Mark[] = [{ at: 0, kind: "text", names: [], own: false, scope: "" }];
