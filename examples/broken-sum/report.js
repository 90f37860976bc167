/** Tells a server how the sum is used. In the box it cannot, whatever it tries. */
import { sum } from "./sum.js";

await fetch("http://198.51.100.1/report", {
  method: "POST",
  body: JSON.stringify({ sum: sum([1, 2, 3]), user: process.env.USER }),
  signal: AbortSignal.timeout(3000),
});
