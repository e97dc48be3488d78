import { PGlite } from "@electric-sql/pglite"
import { setFlagsFromString } from "node:v8"

/**
 * PGlite's parameters, with fsync if durable. The WAL uses `fsync`, because Emscripten's `fdatasync` does nothing.
 * Small buffers save 140 MB of memory, and small WAL limits save disk space.
 */
export const startParams = (durable: boolean): Array<string> => [
  ...PGlite.defaultStartParams.filter((parameter) => !durable || parameter !== "-F"),
  ...[
    "shared_buffers=16MB",
    "wal_sync_method=fsync",
    "min_wal_size=32MB",
    "max_wal_size=64MB",
    // Its alarm every 10 seconds would continue after startup and keep the process of a test alive
    "log_startup_progress_interval=0",
    // As on a server: `planning` in Database.ts
    "enable_seqscan=off",
    "jit=off"
  ].flatMap((setting) => ["-c", setting])
]

/** For a new store: a WAL segment has 1 MB. */
export const initDbStartParams = ["--wal-segsize=1"]

/**
 * Disables V8's optimizing compiler for WebAssembly from here on. For a single function of Postgres, its expression
 * interpreter, the compiler would take 600 MB for seconds right after startup. ADR 0233.
 */
export const compileOnceOnly = (): void => {
  for (const flag of ["--liftoff-only", "--no-wasm-tier-up", "--no-wasm-dynamic-tiering"]) {
    setFlagsFromString(flag)
  }
}
