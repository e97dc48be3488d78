import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { text } from "./recorded/body.ts"
import { startRecordedVendors, vendorKeys } from "./recordedVendors.ts"
import type { World } from "./worlds.ts"

const folder = join(import.meta.dirname, "..")
const project = join(folder, "../..")

const versionIn = (base: string, name: string): string => {
  const file = join(base, "node_modules", name, "package.json")
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")).version : "nothing"
}

/** The packages that the project's own tests also use, taken from there. */
const shared = ["@anthropic-ai/sdk", "@google/genai"]

/** Checks that each package of the folder's package.json is installed in the version that it names. */
const checkPackages = () => {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  const wanted: Record<string, string> = manifest.dependencies
  const missing = Object.entries(wanted).flatMap(([name, pin]) => {
    const version = /[^@]+$/u.exec(pin)?.[0]
    const found = versionIn(folder, name)
    return found === version ? [] : [`${name} ${version} (found: ${found})`]
  })
  missing.push(...shared.filter((name) => versionIn(project, name) === "nothing"))
  if (missing.length > 0) {
    throw new Error(`Missing in test/outside: ${missing.join(", ")}. Run: npm run test:outside`)
  }
}

const none = { url: "", key: "", operatorToken: "" }
const sandboxText =
  "This answer comes from the built-in simulator: set a vendor key to reach the real model."

/** A gateway without vendor keys, and one with the recorded vendors. */
export default async (vitest: TestProject) => {
  checkPackages()
  const vendors = await startRecordedVendors()
  const started = await Promise.allSettled([
    GatewayProcess.start(),
    GatewayProcess.start({
      env: {
        OPENAI_API_KEY: vendorKeys.openai,
        OPENAI_BASE_URL: `${vendors.origin}/v1`,
        ANTHROPIC_API_KEY: vendorKeys.anthropic,
        ANTHROPIC_BASE_URL: vendors.origin,
        GEMINI_API_KEY: vendorKeys.gemini,
        GEMINI_BASE_URL: vendors.origin,
        DEEPSEEK_API_KEY: vendorKeys.deepseek,
        DEEPSEEK_BASE_URL: `${vendors.origin}/v1`
      }
    })
  ])
  const gateways = started.flatMap((it) => (it.status === "fulfilled" ? [it.value] : []))
  const close = async () => {
    await Promise.all(gateways.map((gateway) => gateway.close()))
    vendors.close()
  }
  const failed = started.find((it) => it.status === "rejected")
  if (failed !== undefined) {
    await close()
    throw failed.reason
  }
  const [sandbox, recorded] = await Promise.all(
    gateways.map(async (gateway) => ({
      url: gateway.url,
      key: await gateway.key(),
      operatorToken: gateway.adminToken
    }))
  )
  const worlds: ReadonlyArray<World> = [
    { ...none, name: "the sandbox", ...sandbox, text: sandboxText },
    { ...none, name: "a recorded upstream", ...recorded, text }
  ]
  vitest.provide("worlds", worlds)
  return close
}
