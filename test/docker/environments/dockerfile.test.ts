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

test("each line has the folder, variables and shell that apply at its position", () => {
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

test("each line has the user that applies at its position, and a stage inherits from the one it is based on", () => {
  const { lines, notTaken } = read(
    `ARG WHO=1000:100
FROM one AS base
RUN a
USER node
RUN b
USER root
RUN c
USER 0:0
RUN d
ENV GROUP=staff
USER "node:$GROUP"
FROM base
ARG WHO
RUN e
COPY <<EOF /f
text
EOF
USER \${WHO}
RUN f
USER 0:5
RUN g
`,
  );
  assert.deepEqual(
    lines.map(({ run, user }) => [run.slice(0, 1), user ?? ""]),
    [
      ["a", ""],
      ["b", "node"],
      ["c", ""],
      ["d", ""],
      ["e", "node:staff"],
      // Copied files belong to root, whichever user runs the lines.
      ["m", ""],
      ["f", "1000:100"],
      ["g", "0:5"],
    ],
  );
  assert.deepEqual(notTaken, ["USER 0:5, for boxes: they run as the workspace's owner"]);
});

for (const user of ["", "a b", "$(id)", "a;b", "-x", ":", "1000:", "a:b:c", "../x", "$NONE"])
  test(`USER ${user} is refused with its line`, () => {
    assert.match(
      refused(`FROM one\nRUN a\nUSER ${user}\n`),
      /^line 3: USER .*not the name or number of a user/,
    );
  });

test("only the stages that the last or the selected one is based on are used", () => {
  const text = `FROM one AS Base
RUN echo base
FROM two AS other
RUN echo other
FROM base
RUN echo last
`;
  const last = read(text);
  assert.deepEqual([last.image, last.lines.map(({ run }) => run)], ["one", ["echo base", "echo last"]]);
  assert.deepEqual(read(text, { target: "other" }).image, "two");
  assert.equal(readDockerfile(text, { target: "none" }), "it has no stage none");
});

const BUILT = `FROM one AS Base
RUN echo base
VOLUME /x
FROM base AS unused
COPY --from=elsewhere:1 /a /b
FROM two AS tool
WORKDIR /src
COPY --from=BASE /opt/base base
COPY --from=files.test:5000/kit/of:1@sha256:${"a".repeat(64)} usr/bin/kit ../usr/../etc/kit /opt/kit/
RUN make
FROM base
WORKDIR /opt
COPY --chown=1:staff --chmod=755 --from=tool /src/out bin/
COPY --from=0 ["/a b", "c"]
COPY --from=tool /src/other /
COPY --from=base --chown=1 lib/*/[a-c]?.so /lib/.* libs/
FROM last
COPY --from=3 /opt /opt
`;

test("references to stages and images become numbers, each after those it needs itself", () => {
  const { image, lines, stages, notTaken } = read(BUILT.slice(0, BUILT.indexOf("FROM last")));
  assert.deepEqual(
    [image, ...stages.map((stage) => stage.image)],
    ["one", "one", `files.test:5000/kit/of:1@sha256:${"a".repeat(64)}`, "two"],
    "unused stages are left out",
  );
  assert.deepEqual(
    stages.map((stage) => stage.lines.map(({ run, from }) => from ?? run)),
    [
      ["echo base"],
      [],
      [
        { stage: 0, paths: ["/opt/base"], to: "/src/base" },
        { stage: 1, paths: ["/usr/bin/kit", "/etc/kit"], to: "/opt/kit/" },
        "make",
      ],
    ],
  );
  assert.deepEqual(
    lines.map(({ run, from }) => from ?? run),
    [
      "echo base",
      { stage: 2, paths: ["/src/out"], to: "/opt/bin/", mode: "755", owner: "1:staff" },
      { stage: 0, paths: ["/a b"], to: "/opt/c" },
      { stage: 2, paths: ["/src/other"], to: "/" },
      { stage: 0, paths: ["/lib/*/[a-c]?.so", "/lib/.*"], to: "/opt/libs/", owner: "1" },
    ],
  );
  assert.match(lines[1]?.run ?? "", /^: 'COPY --chown=1:staff --chmod=755 --from=tool/);
  assert.deepEqual(notTaken, ["VOLUME /x: folders are kept by the recipe"]);
  assert.deepEqual(
    read(BUILT).stages.map((stage) => stage.image),
    ["one", `files.test:5000/kit/of:1@sha256:${"a".repeat(64)}`, "two", "one"],
    "a stage of a stage",
  );
  assert.deepEqual(read(BUILT, { target: "unused" }).stages, [
    { image: "elsewhere:1", lines: [], notTaken: [] },
  ]);
});

test("arguments come from the caller or else from the file, and a heredoc becomes one script", () => {
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

/** The lines that these instructions become; `-` for each that is not taken. */
const brought = (...instructions: readonly string[]): readonly string[] => {
  const { lines, notTaken } = read(`FROM x\nARG V=7\nWORKDIR /opt\n${instructions.join("\n")}\n`);
  return [...lines.map(({ run }) => run), ...notTaken.map(() => "-")];
};
const GET = (url: string, to: string): string =>
  `if command -v curl >/dev/null; then curl -fsSL -o ${to} ${url}; else wget -q -O ${to} ${url}; fi`;

test("a heredoc is written to its target, and a download is made in the layer's container", () => {
  assert.deepEqual(brought("COPY <<EOF /etc/motd", "it's $V", "EOF"), [
    String.raw`mkdir -p "$(dirname /etc/motd)" && printf '%s\n' 'it'\''s 7' > /etc/motd`,
  ]);
  assert.deepEqual(brought("COPY --chmod=755 --chown=1:2 <<'run.sh' bin/", "echo $V", "run.sh"), [
    String.raw`mkdir -p "$(dirname /opt/bin/run.sh)" && printf '%s\n' 'echo $V' > /opt/bin/run.sh && chmod 755 /opt/bin/run.sh && chown 1:2 /opt/bin/run.sh`,
  ]);
  assert.deepEqual(brought("ADD https://files.test/a/b-$V.tgz kit/"), [
    `mkdir -p "$(dirname /opt/kit/b-7.tgz)" && ${GET("https://files.test/a/b-7.tgz", "/opt/kit/b-7.tgz")} && chmod 600 /opt/kit/b-7.tgz`,
  ]);
  const sum = "a".repeat(64);
  assert.match(
    brought(`ADD --checksum=sha256:${sum} --chmod=644 http://files.test/x /y`)[0] ?? "",
    new RegExp(`&& printf '%s {2}%s\\\\n' ${sum} /y \\| sha256sum -c - >/dev/null && chmod 644 /y$`),
  );
  assert.equal(brought('ADD ["https://files.test/a", "https://files.test/b", "/x/"]').length, 2);
});

test("files of the repository and invalid sources are not taken", () => {
  for (const instruction of [
    "COPY . /x",
    "COPY ../../etc/passwd /x",
    "ADD data.tar /x",
    "ADD https://files.test/a data.tar /x/",
    "ADD https://files.test/a https://files.test/b /x",
    "ADD https://files.test/own/repo.git /x",
    "ADD git@files.test:own/repo /x",
    "ADD file:///etc/passwd /x",
    "ADD --checksum=md5:1 https://files.test/a /x",
    "ADD --unpack=true https://files.test/a /x",
    "ADD https://files.test/ /x/",
    "COPY https://files.test/a /x",
    "COPY --from=0 /a /b",
    "COPY --from=7 /a /b",
    "COPY --from=../x /a /b",
    "COPY --from=a:b:c /a /b",
    "COPY --from=other / /b",
    "COPY --from=other /a/.. /b",
    "COPY --from=other /* /b/",
    "COPY --from=other /a/../* /b/",
    "COPY --from=other /a/[b /c/",
    "COPY --from=other /a /c /b",
    "COPY --from=other --parents /a /b",
    "COPY --from=other --chmod=u+x /a /b",
    "COPY --from=other --chown=a;b /a /b",
    "ADD --from=other /a /b",
    "COPY --from=https://files.test/a /a /b",
    "COPY",
    "ADD https://files.test/a",
  ])
    assert.deepEqual(brought(instruction), ["-"], instruction);
});

test("nothing of an address or a text becomes a word of the shell", () => {
  const [line = ""] = brought("ADD https://files.test/$(touch%20x);`id`'\"&a=$(id) /opt/;id/");
  const words = /-o '((?:[^']|'\\'')+)' '?(https:[^ ]+?)'?; else/.exec(line);
  assert.ok(words !== null, line);
  assert.ok(!/\s/.test(words[2] ?? " "));
});

test("a shift operator and a here-string do not start a heredoc", () => {
  const lines = ["echo $((1<<3)) $((8 <<2))", "cat <<<word", "cat <<-EOF\n\tone\n\tEOF"];
  assert.deepEqual(
    read(`FROM x\n${lines.map((line) => `RUN ${line}\n`).join("")}`).lines.map(({ run }) => run),
    ["echo $((1<<3)) $((8 <<2))", "cat <<<word", "cat <<-EOF\none\nEOF"],
  );
});

test("an unreadable Dockerfile is refused with its line", () => {
  for (const [text, why] of [
    ["", /no FROM/],
    ["RUN true", /line 1: RUN before FROM/],
    ["FROM scratch", /line 1: FROM scratch: not an image/],
    ["FROM x\nFLY away", /line 2: FLY is not known/],
    ["FROM x\nRUN <<EOF\ntrue", /line 2: no end of <<EOF/],
    ["FROM x\nRUN", /line 2: RUN without a command/],
    ["FROM x\nSHELL bash", /line 2: not a list of words/],
    ["FROM x\nRUN <<EOF\n#!/usr/bin/env python3\nEOF", /line 2: RUN with a script for a program other/],
    [`FROM x\n${"RUN true\n".repeat(2000)}`, /more than 1000 instructions/],
  ] as const)
    assert.match(refused(text), why, text.slice(0, 40));
});

test("arbitrary texts are read or refused with a message", () => {
  for (const text of [
    "\\\n".repeat(200_000),
    `FROM x\nENV ${'a="\\'.repeat(50_000)}`,
    `FROM ${"$".repeat(200_000)}`,
  ])
    assert.ok(["string", "object"].includes(typeof readDockerfile(text)));
});

test("a dev container's Dockerfile provides its image, lines and variables, and the rest is listed", () => {
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
    found.recipe.system.map(({ run, user }) => [run, user]),
    [["id", "node"]],
  );
  const left = found.notTaken.map(({ what }) => what).join("\n");
  for (const each of [
    /USER node, for boxes: they run as the workspace's owner/,
    /COPY \. \/x/,
    /ENV\.PATH/,
    /ENV\.LD_PRELOAD/,
    /^image: /m,
  ])
    assert.match(left, each);
});

test("a line with very many flags is read in one pass", () => {
  const read = readDockerfile(`FROM debian:12\nADD ${"--a ".repeat(250_000)}https://files.test/a /x\n`);
  assert.ok(typeof read === "object");
});
