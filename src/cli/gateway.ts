#!/usr/bin/env node
import { withHeapFlags } from "./HeapFlags.ts"

// Before all that takes time to load
if (globalThis.process.argv[2] === "serve") withHeapFlags()
await import("./CommandLine.ts")
