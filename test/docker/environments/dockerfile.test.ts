import assert from "node:assert/strict";
import test from "node:test";
import { readDevcontainer } from "../../../src/docker/environments/devcontainer.ts";
import { readDockerfile } from "../../../src/docker/environments/dockerfile.ts";

const read = (text: string, build = {}): Exclude<ReturnType<typeof readDockerfile>, string> => {
  const found = readDockerfile(text, build);
  if (typeof found === "string") throw new Error(found);
  return found;
};

const refused = (text: string): string => {
  const found = readDockerfile(text);
  return typeof found === "string" ? found : "it was read";
};

test("lines have the folder, the variables and the shell that hold where they stand", () => {
  const { image, lines, env, notTaken } = read(
    `# syntax=docker/dockerfile:1
ARG VARIANT="bookworm"
FROM registry.test/base:\${VARIANT}
ARG TOOL=1.2
ENV A=one B="two words" \\
    C=$A
RUN apt-get update \\
  # a comment between
  && apt-get install -y jq

WORKDIR /opt/tools
WORKDIR sub
RUN ["echo", "it's"]
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN echo $TOOL | cat
RUN --mount=type=cache,target=/x true
CMD ["sleep"]
`,
  );
  assert.equal(image, "registry.test/base:bookworm");
  assert.deepEqual(env, { A: "one", B: "two words", C: "" });
  assert.deepEqual(notTaken, []);
  const [first, second, third] = lines;
  assert.match(first?.run ?? "", /^apt-get update\s+&& apt-get install -y jq$/);
  assert.deepEqual([first?.folder, first?.env["TOOL"], first?.env["B"]], ["/", "1.2", "two words"]);
  assert.deepEqual([second?.folder, second?.run], ["/opt/tools/sub", String.raw`echo 'it'\''s'`]);
  assert.equal(third?.run, "/bin/bash -o pipefail -c 'echo $TOOL | cat'");
  assert.equal(lines.length, 4);
});

test("of several stages those count that the last, or the wanted one, is made of", () => {
  const text = `FROM one AS Base
RUN echo base
FROM two AS other
RUN echo other
FROM base
RUN echo last
COPY --from=other /x /y
`;
  const last = read(text);
  assert.deepEqual([last.image, last.lines.map(({ run }) => run)], ["one", ["echo base", "echo last"]]);
  assert.match(last.notTaken.join("\n"), /^COPY --from=other \/x \/y: no file of the repository/);
  assert.deepEqual(read(text, { target: "other" }).image, "two");
  assert.equal(readDockerfile(text, { target: "none" }), "it has no stage none");
});

test("arguments come from who builds, else from the file; what stands between is one script", () => {
  const text = `ARG TAG
FROM base:\${TAG:-none}
ARG TAG
ARG MORE=\${TAG}-x
RUN <<EOF
echo one
  echo two
EOF
RUN cat > /etc/motd <<'END' && echo done
# no comment
END
`;
  const { image, lines } = read(text, { args: { TAG: "7" } });
  assert.equal(image, "base:7");
  assert.deepEqual(lines[0]?.env, { TAG: "7", MORE: "7-x" });
  assert.equal(lines[0]?.run, "echo one\n  echo two");
  assert.equal(lines[1]?.run, "cat > /etc/motd <<'END' && echo done\n# no comment\nEND");
  assert.equal(read(text).image, "base:none");
});

test("what cannot be read says where, and nothing of it is taken", () => {
  for (const [text, why] of [
    ["", /no FROM/],
    ["RUN true", /line 1: RUN before FROM/],
    ["FROM scratch", /line 1: FROM scratch: no image/],
    ["FROM x\nFLY away", /line 2: FLY is not known/],
    ["FROM x\nRUN <<EOF\ntrue", /line 2: no end of <<EOF/],
    ["FROM x\nRUN", /line 2: RUN without a command/],
    ["FROM x\nSHELL bash", /line 2: no list of words/],
    ["FROM x\nRUN <<EOF\n#!/usr/bin/env python3\nEOF", /line 2: RUN with a script of another program/],
    [`FROM x\n${"RUN true\n".repeat(2000)}`, /more than 1000 instructions/],
  ] as const)
    assert.match(refused(text), why, text.slice(0, 40));
});

test("arbitrary texts are read or refused in words, and soon", () => {
  for (const text of [
    "\\\n".repeat(200_000),
    `FROM x\nENV ${'a="\\'.repeat(50_000)}`,
    `FROM ${"$".repeat(200_000)}`,
  ])
    assert.ok(["string", "object"].includes(typeof readDockerfile(text)));
});

test("a dev container's Dockerfile is its image, its lines and its variables; the rest is told", () => {
  const found = readDevcontainer(
    JSON.stringify({
      build: { dockerfile: "Dockerfile", args: { V: "1", H: "${localEnv:H}" } },
      image: "other",
    }),
    "devcontainer.json",
    {
      path: ".devcontainer/Dockerfile",
      text: "ARG V\nFROM base:$V\nENV MODE=test PATH=/opt/x:$PATH LD_PRELOAD=/x\nUSER node\nRUN id\nCOPY . /x\n",
    },
  );
  if (typeof found === "string") throw new Error(found);
  assert.equal(found.recipe.image, "base:1");
  assert.deepEqual(found.recipe.env, { MODE: "test" });
  assert.deepEqual(
    found.recipe.system.map(({ run }) => run),
    ["id"],
  );
  const left = found.notTaken.map(({ what }) => what).join("\n");
  for (const each of [
    /USER node: lines are run as root/,
    /COPY \. \/x/,
    /ENV\.PATH/,
    /ENV\.LD_PRELOAD/,
    /^image: /m,
  ])
    assert.match(left, each);
});
