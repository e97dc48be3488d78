import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { shortLived } from "../../support/compiled.ts"
import { freePort, run } from "../../support/spawnService.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** Runs before the program: a signal comes while this module of it is loaded. */
const preload = (signal: string, file: string) =>
  `data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from "node:module"
    registerHooks({
      load: (url, context, next) => {
        if (url.endsWith(${JSON.stringify(file)})) process.kill(process.pid, "${signal}")
        return next(url, context)
      }
    })`)}`

/** Each with a module that it loads. */
const programs = [
  ["the service", ["src/main.ts"], "/cli/Service.ts"],
  ["the service, late", ["src/main.ts"], "/cli/Shutdown.ts"],
  ["gateway serve", ["src/cli/gateway.ts", "serve"], "/cli/CommandLine.ts"]
] as const

describe("a signal to stop while the program is loaded", () => {
  it.each(programs)("ends %s in order", { timeout: 180_000 }, async (_, words, file) => {
    for (const signal of ["SIGTERM", "SIGINT"]) {
      const options = `--import=${preload(signal, file)}`
      const service = run(process.execPath, [...shortLived, ...words], {
        NODE_OPTIONS: options,
        PORT: String(await freePort()),
        DATA_DIR: join(temporaryFolder("signal"), "data")
      })
      assert.strictEqual(await service.ended, 0, `${signal}: ${service.output()}`)
      assert.notInclude(service.output(), "Listening")
    }
  })
})
