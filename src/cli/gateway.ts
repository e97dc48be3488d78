#!/usr/bin/env node
import { withHeapFlags } from "./HeapFlags.ts"
import { load } from "./LoadingSignals.ts"

const commands = () => import("./CommandLine.ts")

if (globalThis.process.argv[2] === "serve") {
  // Called before everything that takes time to load
  withHeapFlags()
  await load(commands)
} else {
  await commands()
}
