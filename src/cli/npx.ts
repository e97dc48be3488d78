#!/usr/bin/env node
import { withHeapFlags } from "./HeapFlags.ts"

/**
 * The program of `npx generation-gateway`: with arguments it runs the commands of `gateway`, without any the service.
 */
if (globalThis.process.argv.length > 2) {
  await import("./gateway.ts")
} else {
  withHeapFlags()
  await import("../main.ts")
}
