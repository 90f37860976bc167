/** `npm run events-schema`: writes docs/run-events.schema.json from the schemas of the events. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import { eventForm } from "../src/core/events.ts";

/** The object that a failing command prints instead of an answer, or after one. */
export const errorForm = z.strictObject({
  error: z.strictObject({ message: z.string(), remedy: z.string(), exit_code: z.int() }),
});

export const SCHEMA_FILE = path.join(import.meta.dirname, "..", "docs", "run-events.schema.json");

/** Later versions may add fields, so readers must accept unknown ones. */
export function eventsSchema(): string {
  const {
    $schema,
    oneOf = [],
    ...schema
  } = z.toJSONSchema(eventForm, {
    target: "draft-2020-12",
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  const head = { title: "One line of harness run --json", description: "See docs/run-json.md." };
  const { $schema: _, ...error } = z.toJSONSchema(errorForm);
  return `${JSON.stringify({ $schema, ...head, ...schema, oneOf: [...oneOf, error] }, null, 2)}\n`;
}

if (import.meta.main) writeFileSync(SCHEMA_FILE, eventsSchema());
