#!/usr/bin/env node
import { withHeapFlags } from "./HeapFlags.ts"

/** What `npx generation-gateway` runs: with words the commands of `gateway`, without any the service. */
if (globalThis.process.argv.length > 2) {
  await import("./gateway.ts")
} else {
  withHeapFlags()
  await import("../main.ts")
}
