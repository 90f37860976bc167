import test from "node:test";
import { callCases } from "./provider-calls.ts";
import { faultCases } from "./provider-faults.ts";
import { heldCases } from "./provider-held.ts";
import { limitCases } from "./provider-limits.ts";
import { replyCases } from "./provider-replies.ts";
import { refusalCases } from "./provider-refusals.ts";
import { talk, type Talk } from "./provider-ask.ts";
import type { Ability, Scenario, ServerFixture } from "./provider-server.ts";
import type { RequestLimits } from "../../src/models/model-api.ts";

interface Case {
  readonly scenario: Scenario;
  readonly limits?: Partial<RequestLimits>;
  readonly needs?: Ability;
}

/** Adds one case; it is skipped with a reason if the API cannot express what the server should say. */
export type Add = (sentence: string, a: Case, check: (talk: Talk) => Promise<void>) => void;

/** Tests everything that the port `Provider` promises, for one adapter and a server with its wire format. */
export function providerSuite(name: string, fixture: ServerFixture): void {
  const add: Add = (sentence, { scenario, limits, needs }, check) => {
    const lacks = needs === undefined ? undefined : fixture.lacks?.[needs];
    test(`${name}: ${sentence}`, { skip: lacks ?? false }, async () => {
      await using opened = await talk(fixture, scenario, limits);
      await check(opened);
    });
  };
  for (const cases of [replyCases, callCases, faultCases, refusalCases, limitCases, heldCases]) cases(add);
}
