import { query } from "@anthropic-ai/claude-agent-sdk"
import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { modules, versionOf } from "./installed.ts"

/** One run of an agent. */
export interface Run {
  /** The gateway's address and a key, which is all that the agent needs. */
  readonly url: string
  readonly key: string
  readonly prompt: string
  /** The folder in which it works. */
  readonly cwd: string
  /** Its home folder, with its settings. */
  readonly home: string
  /** The run ends once this has been printed. */
  readonly until?: string
}

/** Terminals wrap lines. */
export const isShown = (output: string, text: string): boolean =>
  output.replaceAll(/\s+/gu, " ").includes(text)

interface Ended {
  readonly code: number | null
  /** Everything printed. */
  readonly output: string
}

export interface Agent {
  readonly name: string
  readonly version: string
  /** A tool that the sandbox is asked to call. */
  readonly tool?: string
  readonly run: (run: Run) => Promise<Ended>
}

const platform = `${process.platform}-${process.arch}`

/** An agent that does not end by then is killed. */
const runMillisMax = 100_000

const start = (
  program: string,
  words: ReadonlyArray<string>,
  { cwd, home, until }: Run,
  env: Readonly<Record<string, string>>
): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, words, {
      cwd,
      env: { PATH: process.env["PATH"], HOME: home, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: runMillisMax,
      killSignal: "SIGKILL"
    })
    let output = ""
    const note = (chunk: Buffer) => {
      output += chunk.toString()
      if (until !== undefined && isShown(output, until)) child.kill("SIGKILL")
    }
    child.stdout.on("data", note)
    child.stderr.on("data", note)
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, output }))
  })

/** Writes a settings file into the agent's home. */
const settle = async ({ home }: Run, path: string, text: string) => {
  const file = join(home, path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
}

const claudeVariables = ({ key, url }: Run) => ({
  ANTHROPIC_BASE_URL: url,
  ANTHROPIC_AUTH_TOKEN: key,
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1"
})

const claudeCode: Agent = {
  name: "Claude Code",
  version: versionOf("@anthropic-ai/claude-code"),
  tool: "Read",
  run: (run) =>
    start(
      join(modules, `@anthropic-ai/claude-code-${platform}`, "claude"),
      ["-p", run.prompt, "--permission-mode", "acceptEdits"],
      run,
      claudeVariables(run)
    )
}

const claudeSdk: Agent = {
  name: "Claude Agent SDK",
  version: versionOf("@anthropic-ai/claude-agent-sdk"),
  tool: "Read",
  run: async (run) => {
    const messages = query({
      prompt: run.prompt,
      options: {
        cwd: run.cwd,
        env: { PATH: process.env["PATH"], HOME: run.home, ...claudeVariables(run) },
        permissionMode: "acceptEdits",
        settingSources: []
      }
    })
    let output = ""
    try {
      for await (const message of messages) {
        if (message.type === "result") {
          output += "result" in message ? message.result : message.errors.join(" ")
          if (message.is_error) return { code: 1, output }
        }
      }
    } catch (error) {
      return { code: 1, output: `${output} ${String(error)}` }
    }
    return { code: 0, output }
  }
}

const codexPlatform =
  process.platform === "darwin"
    ? `${process.arch === "arm64" ? "aarch64" : "x86_64"}-apple-darwin`
    : `${process.arch === "arm64" ? "aarch64" : "x86_64"}-unknown-linux-musl`

const codex: Agent = {
  name: "Codex CLI",
  version: versionOf("@openai/codex"),
  run: async (run) => {
    const settings = [
      `openai_base_url = "${run.url}/v1"`,
      "check_for_update_on_startup = false",
      "[analytics]",
      "enabled = false"
    ]
    await settle(run, ".codex/config.toml", settings.join("\n"))
    const vendor = join(modules, `@openai/codex-${platform}`, "vendor", codexPlatform)
    return start(
      join(vendor, "bin", "codex"),
      [
        "exec",
        "--skip-git-repo-check",
        // The machine may not support the agent's own sandbox for commands
        "--dangerously-bypass-approvals-and-sandbox",
        run.prompt
      ],
      run,
      { CODEX_API_KEY: run.key }
    )
  }
}

const geminiCli: Agent = {
  name: "Gemini CLI",
  version: versionOf("@google/gemini-cli"),
  tool: "read_file",
  run: async (run) => {
    const settings = {
      // The choice that a person makes at the first start
      security: { auth: { selectedType: "gemini-api-key" } },
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      privacy: { usageStatisticsEnabled: false },
      tools: { useRipgrep: false }
    }
    await settle(run, ".gemini/settings.json", JSON.stringify(settings))
    return start(
      process.execPath,
      [
        join(modules, "@google/gemini-cli/bundle/gemini.js"),
        "--yolo",
        "--skip-trust",
        "-p",
        run.prompt
      ],
      run,
      {
        GOOGLE_GEMINI_BASE_URL: `${run.url}/vendors/google`,
        GEMINI_API_KEY: run.key,
        GEMINI_CLI_NO_RELAUNCH: "true"
      }
    )
  }
}

const opencode: Agent = {
  name: "opencode",
  version: versionOf("opencode-ai"),
  tool: "read",
  run: async (run) => {
    const settings = {
      autoupdate: false,
      share: "disabled",
      model: "anthropic/claude-sonnet-5",
      provider: { anthropic: { options: { baseURL: `${run.url}/v1`, apiKey: run.key } } }
    }
    await settle(run, ".config/opencode/opencode.json", JSON.stringify(settings))
    return start(
      join(modules, `opencode-${platform}`, "bin", "opencode"),
      ["run", run.prompt],
      run,
      { OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_DEFAULT_PLUGINS: "1" }
    )
  }
}

const python = join(modules, ".python")

const aiderWords =
  "--model openai/gpt-4o --edit-format diff --read input.txt --no-git --yes-always --no-check-update --analytics-disable --no-show-model-warnings --no-detect-urls".split(
    " "
  )

const aider: Agent = {
  name: "aider",
  version: readFileSync(join(import.meta.dirname, "requirements.txt"), "utf8").trim(),
  run: (run) =>
    start(
      join(python, "bin", "aider"),
      [...aiderWords, "--message", run.prompt, "output.txt"],
      run,
      { OPENAI_API_BASE: `${run.url}/v1`, OPENAI_API_KEY: run.key }
    )
}

/** aider comes from PyPI, which not every machine can reach. */
export const hasAider = existsSync(join(python, ".installed"))

export const agents: ReadonlyArray<Agent> = [
  claudeCode,
  claudeSdk,
  codex,
  geminiCli,
  opencode,
  ...(hasAider ? [aider] : [])
]
