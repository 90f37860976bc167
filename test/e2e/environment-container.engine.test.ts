// slow: it builds an image for each thing that a build may try
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { image, skip } from "../fixtures/engine.ts";
import { ownImage } from "../fixtures/own-image.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household, inBox, sandboxExec } from "./box-command.ts";
import { trustAll } from "./trusted.ts";

const harness = (place: Scratch, ...words: readonly string[]): Promise<Ended> =>
  runProgram("bin/harness", words, { home: place.path, cwd: place.at("work") });

/** Each line tells what it could have and could not: the workspace, a network, the host's own files. */
const dockerfile = (image: string, more = ""): string => `ARG BASE
FROM \${BASE:-${image}} AS tools
ENV MODE=test PATH=/opt/kit/bin:$PATH
WORKDIR /opt/kit
RUN mkdir bin && printf '#!/bin/sh\\necho kit\\n' > bin/kit && chmod 4755 bin/kit && kit > said
RUN id -u > who; ls -A /workspace /home/*/work 2>/dev/null | wc -l > seen; ls /sys/class/net > nets; false; true
FROM tools
COPY . /copied
RUN echo last >> said${more}
USER 1000
RUN id -u > /tmp/uid; id -g >> /tmp/uid; ! echo more 2>/dev/null >> said && mkdir /opt/none 2>/dev/null || cp /tmp/uid /var/tmp/uid
`;

test(
  "a trusted dev container's Dockerfile is built line by line in separate boxes, and boxes start from it",
  { skip },
  async () => {
    await using base = await ownImage();
    await using place = await household({
      ".devcontainer/devcontainer.json": JSON.stringify({
        build: { dockerfile: "../tools/Dockerfile" },
        postCreateCommand: "mkdir -p node_modules && cp /opt/kit/said node_modules/said",
      }),
      "tools/Dockerfile": dockerfile(base.name),
      "package.json": '{"name":"small","version":"1.0.0"}',
      "package-lock.json": '{"name":"small","lockfileVersion":3,"packages":{}}',
    });
    const untrusted = await harness(place, "env", "show");
    assert.match(untrusted.stdout + untrusted.stderr, /is ignored: it is not trusted/);
    await trustAll(place);
    const built = await harness(place, "env", "build");
    assert.equal(built.code, 0, built.stderr);
    try {
      assert.match(built.stderr, /USER 1000, for boxes: they run as the workspace's owner/);
      const said = await inBox(
        place,
        'cat /opt/kit/said node_modules/said; cd /opt/kit; cat who seen; cat nets; echo "$MODE"; stat -c %a bin/kit; ls /copied',
      );
      assert.equal(said, "kit\nlast\nkit\nlast\n0\n0\nlo\ntest\n755\ndevcontainer.json\n");

      await place.write("work/tools/Dockerfile", dockerfile(base.name, " && exit 7"));
      const changed = await sandboxExec(place, ["--", "true"]);
      assert.match(changed.stderr, /is out of date|has changed|cannot be read/);
      await trustAll(place);
      const failed = await harness(place, "env", "build");
      assert.equal(failed.code, 1);
      assert.match(failed.stderr, /set-up failed: echo last >> said && exit 7 \(exit code 7\)/);

      await place.write("work/tools/Dockerfile", "FROM scratch\n");
      const odd = await harness(place, "trust", "--show");
      assert.match(
        odd.stdout,
        /tools\/Dockerfile: line 1: FROM scratch: not an image that a box can start from/,
      );
    } finally {
      await harness(place, "env", "rm", "--all");
    }
  },
);

const COPIES = `FROM ${image}
WORKDIR /opt/kit
COPY --chown=1234:5 tools/ bin/
COPY package.json own.txt /opt/files/
COPY own.txt /opt
COPY link /opt/link
COPY ../outside /opt/outside
ADD kit.tar.gz unpacked
RUN bin/say > said && cat /opt/own.txt /opt/files/own.txt unpacked/in >> said; stat -c '%a %u:%g %n' bin bin/say bin/deep/x >> said; ls /opt/link /opt/outside bin >> said 2>&1; true
`;

test(
  "files of a build context are only in that workspace's layer, with the trusted bytes",
  { skip },
  async () => {
    const project = {
      ".devcontainer/devcontainer.json": JSON.stringify({
        build: { dockerfile: "Dockerfile", context: ".." },
      }),
      ".devcontainer/Dockerfile": COPIES,
      ".dockerignore": "**/*.key\n",
      "tools/say": "#!/bin/sh\necho said\n",
      "tools/deep/x": "x\n",
      "tools/a.key": "secret\n",
      "own.txt": "own\n",
      "package.json": "{}",
    };
    await using one = await household(project);
    await using two = await household(project);
    for (const place of [one, two])
      execFileSync(
        "sh",
        [
          "-ec",
          "chmod 755 tools/say; echo packed > in; tar czf kit.tar.gz in; rm in; ln -s /etc/passwd link; echo out > ../outside; chown -R --reference=. .",
        ],
        { cwd: place.at("work") },
      );
    try {
      const shown = await harness(one, "trust", "--show");
      assert.match(shown.stdout, /tools\/say: echo said/);
      assert.match(shown.stdout, /kit\.tar\.gz: binary, \d+ bytes, sha256/);
      assert.match(shown.stdout, /not taken: COPY link \/opt\/link: link is a link/);
      assert.match(
        shown.stdout,
        /not taken: COPY \.\.\/outside \/opt\/outside: it leads out of the build's context/,
      );
      assert.doesNotMatch(shown.stdout, /secret/);
      const images = new Set<string>();
      for (const place of [one, two]) {
        await trustAll(place);
        const built = await harness(place, "env", "build");
        assert.equal(built.code, 0, built.stderr);
        const said = await inBox(place, "cat /opt/kit/said");
        assert.equal(
          said.replaceAll(/^ls: .*\n/gm, ""),
          "said\nown\nown\npacked\n755 1234:5 bin\n755 1234:5 bin/say\n644 1234:5 bin/deep/x\nbin:\ndeep\nsay\n",
        );
        const record = execFileSync("find", [place.path, "-path", "*/environments/*/record"])
          .toString()
          .trim();
        images.add((JSON.parse(readFileSync(record, "utf8")) as { readonly image: string }).image);
      }
      assert.equal(images.size, 2, "a layer with files is never shared");

      await one.write("work/tools/say", "#!/bin/sh\necho other\n");
      const changed = await harness(one, "env", "show");
      assert.match(changed.stdout + changed.stderr, /is ignored: it has changed since it was trusted/);
      const twin = await harness(two, "env", "build");
      assert.deepEqual([twin.code, twin.stderr.includes("Dockerfile")], [0, false], twin.stderr);
    } finally {
      for (const place of [one, two]) await harness(place, "env", "rm", "--all");
    }
  },
);

/** Each line tells whose it is, and what it could not do. */
const users = (more: string): string => `FROM ${image}
RUN printf 'kit:x:1234:1235::/home/kit:/bin/sh\\n' >> /etc/passwd && printf 'kit:x:1235:\\nmore:x:1240:kit\\n' >> /etc/group \\
  && mkdir -p /home/kit /opt/kit && chown 1234:1235 /home/kit && mkdir -m 777 /opt/said
WORKDIR /opt/kit
USER kit
RUN echo "$(id -u):$(id -G):$HOME:$PWD:$PLACE" > /opt/said/name; touch ~/mine; touch /opt/kit/no || echo refused >> /opt/said/name
USER 1234:more
RUN echo "$(id -u):$(id -G):$HOME" > /opt/said/group
USER 4321
ENV PLACE="it's here"
RUN echo "$(id -u):$(id -G):$HOME:$PLACE" > /opt/said/number; grep -E '^Cap(Eff|Prm|Amb)|^NoNew' /proc/self/status > /opt/said/rights
USER 4321:77
ENV HOME=/opt/said
SHELL ["/bin/bash", "-c"]
RUN echo "$(id -u):$(id -G):$HOME:\${BASH_VERSION:+bash}" > ~/own
USER root
RUN ["sh", "-c", "echo $(id -u):$(stat -c %u:%g /home/kit/mine) > /opt/said/root"]
${more}`;

test(
  "lines of a Dockerfile run as the user it names, without any capability, and later lines as the next user",
  { skip },
  async () => {
    await using place = await household({
      ".devcontainer/devcontainer.json": JSON.stringify({
        build: { dockerfile: "Dockerfile" },
        postCreateCommand: "true",
      }),
      ".devcontainer/Dockerfile": users("USER nobody-here\nRUN true\n"),
    });
    await trustAll(place);
    try {
      const unknown = await harness(place, "env", "build");
      assert.equal(unknown.code, 1, unknown.stderr);
      assert.match(
        unknown.stderr,
        /set-up failed: [^\n]*true [^]*USER nobody-here: there is no such user in the image's \/etc\/passwd/,
      );
      await place.write("work/.devcontainer/Dockerfile", users(""));
      await trustAll(place);
      const built = await harness(place, "env", "build");
      assert.equal(built.code, 0, built.stderr);
      const steps = [...built.stderr.matchAll(/^(\d+)\/(\d+) /gm)].map(([, at, of]) => [
        Number(at),
        Number(of),
      ]);
      assert.deepEqual(
        steps,
        steps.map((_, index) => [index + 1, steps.length]),
        "those of the layer and of the set-up are counted in one row",
      );
      const said = await inBox(place, "cd /opt/said && cat name group number own root; cat rights");
      const [lines, rights] = [said.split("\n").slice(0, 6), said.split("\n").slice(6)];
      assert.deepEqual(lines, [
        "1234:1235 1240:/home/kit:/opt/kit:",
        "refused",
        "1234:1240:/home/kit",
        "4321:0:/:it's here",
        "4321:77:/opt/said:bash",
        "0:1234:1235",
      ]);
      assert.deepEqual(
        rights.filter((line) => line !== "").map((line) => line.replace(/\s+/, " ")),
        ["CapPrm: 0000000000000000", "CapEff: 0000000000000000", "CapAmb: 0000000000000000", "NoNewPrivs: 1"],
      );
    } finally {
      await harness(place, "env", "rm", "--all");
    }
  },
);

test(
  "a download in a Dockerfile is made from the layer's own box if the user granted it, and is reported if refused",
  { skip },
  async () => {
    // An address of this host's loopback that no tool of the box takes for its own.
    const server = createServer((_, response) => response.end("fetched\n"));
    server.listen(0, "127.0.0.2");
    await once(server, "listening");
    const at = `127.0.0.2:${(server.address() as AddressInfo).port}`;
    await using place = await household({
      ".devcontainer/devcontainer.json": JSON.stringify({ build: { dockerfile: "Dockerfile" } }),
      ".devcontainer/Dockerfile": `FROM ${image}\nADD http://${at}/a/kit.txt /opt/kit/\nCOPY <<END /opt/kit/text\nwritten\nEND\n`,
    });
    await trustAll(place);
    try {
      const refused = await harness(place, "env", "build", "--allow-domain", "other.test");
      assert.equal(refused.code, 1, refused.stderr);
      assert.match(
        refused.stderr,
        /set-up failed: mkdir -p[^]*--allow-domain 127\.0\.0\.2:\d+ would grant it/,
      );
      const built = await harness(place, "env", "build", "--allow-domain", at);
      assert.equal(built.code, 0, built.stderr);
      assert.equal(await inBox(place, "cat /opt/kit/text; stat -c %a /opt/kit/kit.txt"), "written\n600\n");
    } finally {
      await harness(place, "env", "rm", "--all");
      server.close();
    }
  },
);
