import * as z from "zod";
import {
  durationFrom,
  mountFrom,
  oneOrMoreFrom,
  pairsFrom,
  portFrom,
  probeFrom,
  sizeFrom,
  textsFrom,
  wordsFrom,
} from "./values.ts";

/** The part of the compose format that harness can start by itself. Unknown keys are errors everywhere. */

const form = <T>(expected: string, from: (value: unknown) => T | undefined) =>
  z.unknown().transform((value, context): T => {
    const read = from(value);
    if (read !== undefined) return read;
    context.addIssue({ code: "custom", message: `expected ${expected}` });
    return z.NEVER;
  });

const words = form("a list of texts, or words without quotes", wordsFrom);
const texts = form("a list of texts", textsFrom);
const pairs = form("KEY: value or a list of KEY=value, each with a value", pairsFrom);
const duration = form("a duration such as 10s or 1m30s", durationFrom);
const port = form("a port bound to loopback, such as 127.0.0.1:6333:6333", portFrom);
const mount = form("a named volume such as data:/var/data or data:/var/data:ro", mountFrom);
const list = <T extends z.ZodType>(item: T) => z.array(item, "expected a list");

/** A tag other than latest, or a digest: what runs must not change by itself. */
const pinnedImage = z
  .string("expected an image with a version, such as name:1.2.3")
  .regex(
    /^[a-z0-9][\w./:-]*(?::(?!latest$)[\w][\w.-]*|@sha256:[0-9a-f]{64})$/i,
    "expected an image with a version, such as name:1.2.3",
  );

const healthcheck = z.strictObject(
  {
    test: form("a command, or a list that starts with CMD, CMD-SHELL or NONE", probeFrom),
    interval: duration.optional(),
    timeout: duration.optional(),
    start_period: duration.optional(),
    retries: z.int("expected a whole number").min(1, "expected 1 or more").optional(),
  },
  { error: (issue) => (issue.code === "invalid_type" ? "expected a map with test" : undefined) },
);

const service = z.strictObject({
  image: pinnedImage,
  command: words.optional(),
  entrypoint: words.optional(),
  environment: pairs.default({}),
  labels: pairs.default({}),
  ports: list(port).default([]),
  volumes: list(mount).default([]),
  healthcheck: healthcheck.optional(),
  mem_limit: form("a size such as 256m or 2g", sizeFrom).optional(),
  restart: z
    .enum(
      ["no", "always", "unless-stopped", "on-failure"],
      "expected no, always, unless-stopped or on-failure",
    )
    .default("no"),
  profiles: texts.default([]),
  cap_drop: texts.default([]),
  security_opt: texts.default([]),
  read_only: z.boolean("expected true or false").default(false),
  tmpfs: form("a path or a list of paths", oneOrMoreFrom).default([]),
  user: form("a user such as 1000:1000", (value) =>
    typeof value === "string" || typeof value === "number" ? String(value) : undefined,
  ).optional(),
});

const labelled = z
  .strictObject({ labels: pairs.default({}) })
  .nullable()
  .transform((value) => value ?? { labels: {} });

const named = <T extends z.ZodType>(item: T) =>
  z.record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/), item);

export const composeSchema = z
  .strictObject({
    name: z
      .string("expected a project name")
      .regex(/^[a-z0-9][a-z0-9_-]*$/, "expected a project name of a-z, 0-9, _ and -"),
    services: named(service),
    volumes: named(labelled).default({}),
    networks: z.strictObject({ default: labelled.optional() }).default({}),
  })
  .superRefine(({ services, volumes }, context) => {
    for (const [name, { volumes: mounts }] of Object.entries(services))
      for (const [index, { volume }] of mounts.entries())
        if (!Object.hasOwn(volumes, volume)) {
          const message = `expected a volume that is declared under volumes:`;
          context.addIssue({ code: "custom", path: ["services", name, "volumes", index], message });
        }
  });

type Schema = z.infer<typeof composeSchema>;
export type Service = Schema["services"][string];
export type ComposeProject = Schema;
