import { describe } from "node:test";
import { tells } from "./told.ts";

describe("a program that loads code of the folder to print its version or help does so in the workspace only", () => {
  tells({
    "cargo --version": "allow; code settings",
    "cd /tmp/x && cargo --version": "ask; code settings",
    "cd /tmp/x && pytest --help": "ask; code settings",
    "cd /tmp/x && yarn --version": "ask; code settings",
    "cd /tmp/x && bundle exec rspec --version": "ask; code settings",
    "cd node_modules/x && jest --version": "ask; code settings",
    "cd /tmp/x && node --version": "allow",
    "git -C /tmp/x log --help": "ask; read /tmp/x; code settings",
    "git log --help": "allow; code settings",
  });
});

describe("a package script receives every option, including --help and --version", () => {
  tells({
    "yarn test --help": "allow; code check",
    "yarn start --help": "ask; code project",
    "pnpm start --version": "ask; code project",
  });
});

describe("an option before a file belongs to the program", () => {
  tells({
    "vitest -tc /tmp/x.ts": "ask; code check; option.unknown c",
    "erl ''": "ask; code project",
  });
});
