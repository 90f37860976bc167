import { skip } from "../fixtures/engine.ts";
import { grantedNetworkCases } from "./granted-network.ts";
import { stubPlace } from "./stub-pods.ts";

grantedNetworkCases({ skip, newPlace: (kind) => stubPlace(kind), devices: ["lo"] });
