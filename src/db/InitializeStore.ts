/**
 * A separate program, started by `NewStore.ts`, that creates a store in the folder given as its argument. `initdb`
 * needs more memory than the whole service; the memory is freed when this process ends. ADR 0233.
 */
import { PGlite } from "@electric-sql/pglite"
import { NodeFS } from "@electric-sql/pglite/nodefs"
import { compileOnceOnly, initDbStartParams, startParams } from "./PgliteOptions.ts"

// The parent process has ended
process.once("disconnect", () => process.exit(1))
compileOnceOnly()
const fs = new NodeFS(process.argv[2] ?? "")
const pglite = await PGlite.create({ fs, startParams: startParams(false), initDbStartParams })
await pglite.close()
process.exit(0)
