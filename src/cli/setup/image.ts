import type { Engine } from "../../docker/engine.ts";
import { ensureImage, imageExists } from "../../docker/images/build.ts";
import { checkImage } from "../../docker/images/needs.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { done, type SetupContext, standIn, type StepResult } from "./context.ts";

/** Our image, made when it is not there; or the user's own, checked for what the runner needs. */
export async function imageStep(engine: Engine, context: SetupContext, rebuild = false): Promise<StepResult> {
  const own = context.config.settings.image;
  if (own !== null) return foreignImage(engine, context.root, own);
  const built = await ensureImage(engine, { ...context, cache: context.places.cache }, rebuild);
  if (built.how === "kept") return done(`${built.tag} (${built.how})`);
  const check = await checkImage(engine, context.root, built.tag);
  const lacking = [...check.missing, ...check.absent];
  if (lacking.length === 0) return done(`${built.tag} (${built.how})`);
  const message = `the image that was built lacks ${lacking.join(", ")}`;
  throw new HarnessError(EXIT.sandbox, message, "harness sandbox build --rebuild");
}

async function foreignImage(engine: Engine, root: string, image: string): Promise<StepResult> {
  if (!(await imageExists(engine, image))) {
    const message = `no image ${image} on this engine`;
    throw new HarnessError(
      EXIT.sandbox,
      message,
      `docker pull ${image}   (or: harness config set image null)`,
    );
  }
  const check = await checkImage(engine, root, image);
  if (check.missing.length > 0) {
    const message = `the image ${image} lacks what the runner needs: ${check.missing.join(", ")}`;
    throw new HarnessError(EXIT.sandbox, message, `add it to ${image}, or: harness config set image null`);
  }
  if (check.absent.length === 0) return done(`${image} (yours)`);
  const lacking = check.absent.join(", ");
  return standIn(`${image}, for ours`, `${image} (yours); without ${lacking}, which some tasks want`);
}
