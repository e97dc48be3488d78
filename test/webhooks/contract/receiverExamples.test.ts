import { assert, describe, it } from "@effect/vitest"
import { spawn, spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { deliveryHeaders, generateSecret } from "../../../src/webhooks/Signature.ts"
import { freePort } from "../../support/spawnService.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { docsBlock } from "../../support/webhookDocs.ts"

const folder = temporaryFolder("webhook-receivers")

const write = (name: string, text: string) => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const verifier = fileURLToPath(new URL("../../../src/webhooks/verifyWebhook.ts", import.meta.url))

const goTool = "go"

const receivers = [
  {
    language: "TypeScript",
    tool: process.execPath,
    probe: ["--version"],
    command: () => [
      process.execPath,
      write(
        "receiver.mts",
        docsBlock("ts receiver").replace('"generation-gateway-webhooks"', JSON.stringify(verifier))
      )
    ]
  },
  {
    language: "Python",
    tool: "python3",
    probe: ["--version"],
    command: () => ["python3", write("receiver.py", docsBlock("python receiver"))]
  },
  {
    language: "Go",
    tool: goTool,
    probe: ["version"],
    command: () => {
      const program = join(folder, "receiver-go")
      const source = write("receiver.go", docsBlock("go receiver"))
      const built = spawnSync(goTool, ["build", "-o", program, source], { encoding: "utf8" })
      assert.strictEqual(built.status, 0, built.stderr)
      return [program]
    }
  },
  {
    language: "Java",
    tool: "javac",
    probe: ["--version"],
    command: () => {
      const source = write("Receiver.java", docsBlock("java receiver"))
      const built = spawnSync("javac", ["-d", folder, source], { encoding: "utf8" })
      assert.strictEqual(built.status, 0, built.stderr)
      return ["java", "-cp", folder, "Receiver"]
    }
  }
]

describe("the receiver examples of docs/webhooks.md run unchanged", () => {
  // Every development machine has Node and Python; Go and Java are checked where they are installed
  for (const { language, tool, probe, command } of receivers) {
    if (language === "Go" && spawnSync(tool, probe).status !== 0) {
      it("Go: is the program of examples/go-receiver (not run, because Go is not installed)", () => {
        const example = new URL("../../../examples/go-receiver/main.go", import.meta.url)
        assert.strictEqual(docsBlock("go receiver"), readFileSync(example, "utf8"))
      })
      continue
    }
    if (language === "Java" && spawnSync(tool, probe).status !== 0) {
      it("Java: is one class (not run, because Java is not installed)", () => {
        assert.match(docsBlock("java receiver"), /\npublic class Receiver \{/u)
      })
      continue
    }
    it(`${language}: accepts each signed delivery once, and refuses everything else`, async () => {
      const secret = generateSecret()
      const port = await freePort()
      const [program, ...options] = command()
      const child = spawn(program!, options, {
        env: { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port) }
      })
      let output = ""
      child.stdout.on("data", (chunk) => (output += chunk))
      child.stderr.on("data", (chunk) => (output += chunk))
      try {
        await listens(port)
        await breakOff(port)
        await exercise(port, secret)
        assert.strictEqual(output.match(/received task\.created/gu)?.length, 3, output)
      } finally {
        child.kill()
      }
    }, 120_000)
  }
})

const listens = async (port: number) => {
  for (let round = 0; round < 200; round++) {
    const up = await fetch(`http://127.0.0.1:${port}/`, { method: "POST" }).catch(() => undefined)
    if (up !== undefined) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error("the receiver is not listening")
}

/** A sender that disconnects in the middle of its body. */
const breakOff = (port: number) =>
  new Promise<void>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf", () =>
        socket.destroy()
      )
    })
    socket.on("close", () => resolve())
  })

const exercise = async (port: number, secret: string) => {
  const event = new TextEncoder().encode('{"type":"task.created","text":"雪 é"}')
  const now = Math.trunc(Date.now() / 1000)
  const headersFor = (deliveryId: string, skewSeconds = 0, key = secret, previous?: string) =>
    deliveryHeaders(
      "Service",
      { deliveryId, timestampSeconds: now + skewSeconds, body: event },
      key,
      previous
    )
  const post = async (headers: Record<string, string>, body = event) =>
    (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body: body.slice() }))
      .status

  assert.strictEqual(await post(headersFor("whd_1")), 204)
  assert.strictEqual(await post(headersFor("whd_1", 1)), 204, "a duplicate is acknowledged")
  assert.strictEqual(await post(headersFor("whd_2", -290)), 204, "an older one within the skew")
  assert.strictEqual(
    await post(headersFor("whd_3", 0, "whsec_new", secret)),
    204,
    "the previous secret"
  )

  assert.strictEqual(await post(headersFor("whd_4", -310)), 400, "too old")
  assert.strictEqual(await post(headersFor("whd_4", 310)), 400, "from the future")
  assert.strictEqual(await post(headersFor("whd_4", 0, "whsec_other")), 400, "another secret")
  assert.strictEqual(
    await post(headersFor("whd_4"), new TextEncoder().encode("{}")),
    400,
    "another body"
  )
  const { "X-Service-Webhook-Signature": signature = "", ...unsigned } = headersFor("whd_4")
  assert.strictEqual(await post(unsigned), 400, "no signature")
  assert.strictEqual(
    await post({ ...unsigned, "X-Service-Webhook-Signature": signature.replace("v1=", "v2=") }),
    400,
    "another version"
  )
  assert.strictEqual(
    await post({ ...headersFor("whd_4"), "X-Service-Webhook-Timestamp": "soon" }),
    400,
    "not a number"
  )
}
