import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { readFileSync } from "node:fs"
import { parse } from "yaml"
import { AppConfig } from "../../../src/config/Config.ts"

/** docs/operating.md#container */

interface Composition {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly env_file?: unknown
        readonly environment: Readonly<Record<string, string>>
        readonly secrets?: ReadonlyArray<string>
        readonly stop_grace_period?: string
      }
    >
  >
  readonly secrets: Readonly<Record<string, unknown>>
}

const { secrets, services } = parse(readFileSync("deploy/compose/three-gateways.yml", "utf8"), {
  merge: true
}) as Composition
const gateways = Object.entries(services).filter(([name]) => name.startsWith("gateway-"))
const proxy = readFileSync("deploy/compose/Caddyfile", "utf8")

describe("the gateway with its own Postgres", () => {
  it("reads every variable of .env, so that a vendor's key ends its sandbox", () => {
    const own: Composition = parse(readFileSync("docker-compose.yml", "utf8"))
    assert.deepStrictEqual(own.services["gateway"]?.env_file, [{ path: ".env", required: false }])
  })
})

describe("three gateways behind a proxy", () => {
  it("are all upstreams of the proxy, which checks their readiness and does not buffer", () => {
    const [, upstreams = ""] = /reverse_proxy (.*) \{/u.exec(proxy) ?? []
    assert.sameMembers(
      upstreams.split(" "),
      gateways.map(([name]) => `${name}:8080`)
    )
    assert.lengthOf(gateways, 3)
    assert.match(proxy, /^\t\thealth_uri \/readyz$/mu)
    assert.match(proxy, /^\t\tflush_interval -1$/mu)
  })

  it("read every secret from a declared file, and set only documented variables", () => {
    const known = readFileSync("docs/reference/configuration.md", "utf8")
    for (const { environment, secrets: own = [] } of gateways.map(([, it]) => it)) {
      for (const [name, value] of Object.entries(environment)) {
        assert.include(known, `\`${name}\``)
        if (name.endsWith("_FILE")) assert.include(own, value.replace("/run/secrets/", ""))
      }
      for (const name of own) assert.property(secrets, name)
    }
  })

  it.effect("get enough time to shut down", () =>
    Effect.map(AppConfig, ({ shutdownDelay, shutdownGrace }) => {
      const needed = Duration.toSeconds(shutdownDelay) + Duration.toSeconds(shutdownGrace)
      for (const [, { stop_grace_period = "0" }] of gateways) {
        assert.isAtLeast(Number.parseInt(stop_grace_period, 10), needed + 10)
      }
      const [, every = ""] = /health_interval (\d+)s/u.exec(proxy) ?? []
      assert.isAtMost(2 * Number(every), Duration.toSeconds(shutdownDelay))
    }).pipe(Effect.provide(AppConfig.layerOf({})))
  )
})
