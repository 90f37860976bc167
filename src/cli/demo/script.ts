/** One command of the demo and what must come of it; the demo fails when anything else does. */
export interface DemoStep {
  readonly says: string;
  readonly command: string;
  /** The command's exit code that shows the point. */
  readonly ends: "zero" | "not zero";
  readonly shows: string;
}

/** Written by hand: no model proposes these. The box they run in is the real one. */
export const DEMO: readonly DemoStep[] = [
  {
    says: "look around",
    command: "id -u; ls -m; node --version",
    ends: "zero",
    shows: "the repository, as its owner, with the pinned Node",
  },
  { says: "run the test", command: "npm test", ends: "not zero", shows: "it fails: the bug is real" },
  {
    says: "reach the network",
    command: "curl -sS --max-time 2 http://198.51.100.1/",
    ends: "not zero",
    shows: "stopped: the box has no network",
  },
  {
    says: "change the system",
    command: "echo hello > /etc/profile.d/hello.sh",
    ends: "not zero",
    shows: "stopped: outside the workspace nothing can be written",
  },
  {
    says: "become root",
    command: "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status && ! chown 0:0 sum.js",
    ends: "zero",
    shows: "no capability to do it with",
  },
  {
    says: "mend the bug",
    command: "sed -i 's/let i = 1/let i = 0/' sum.js",
    ends: "zero",
    shows: "the workspace can be written",
  },
  { says: "run the test again", command: "npm test", ends: "zero", shows: "green" },
];
