/** Long regular expressions written as tables, one alternative a row. Pure. */

/** An expression, a table within the table, or whole words in their own small notation: separated by spaces, with `_` for a space within one. */
type Row = RegExp | ExpressionTable | string;

interface Form {
  /** Expressions around all rows. With either of them, words in rows are whole only as far as these say. */
  readonly before?: string;
  readonly after?: string;
  readonly flags?: string;
}

/** Matches what any of its rows matches. Compiled on first use: a run needs few of all expressions. */
export class ExpressionTable {
  readonly #rows: readonly Row[];
  readonly #form: Form;
  #expression: RegExp | undefined;

  constructor(rows: readonly Row[], form: Form) {
    this.#rows = rows;
    this.#form = form;
  }

  get expression(): RegExp {
    return (this.#expression ??= this.#compile());
  }

  /** Without the flags g and y, which remember where the last match ended. */
  test(text: string): boolean {
    return this.expression.test(text);
  }

  #compile(): RegExp {
    const { before = "", after = "", flags = "" } = this.#form;
    const isEnclosed = before !== "" || after !== "";
    const sources = this.#rows.map((row) => {
      if (row instanceof ExpressionTable) return row.expression.source;
      if (row instanceof RegExp) return row.source;
      const words = row.trim().split(/\s+/).join("|").replaceAll("_", " ");
      return isEnclosed ? words : `\\b(?:${words})\\b`;
    });
    const any = sources.join("|");
    return new RegExp(isEnclosed ? `${before}(?:${any})${after}` : any, flags);
  }
}

/** Earlier rows are tried first where several match. */
export const anyOf = (rows: readonly Row[], form: Form = {}): ExpressionTable =>
  new ExpressionTable(rows, form);
