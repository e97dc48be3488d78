/** Pages whose samples are run, in reading order. */
export const samplePages: ReadonlyArray<string> = [
  "docs/tutorials/01-first-paid-picture.md",
  "docs/tutorials/02-receive-webhooks.md",
  "docs/tutorials/03-test-your-program.md",
  "docs/tutorials/04-openai-app.md",
  "docs/tutorials/05-go-to-production.md",
  "docs/tutorials/06-move-from-another-gateway.md",
  "README.md",
  "docs/vendors-as-files.md"
]

const agentsRun = "test/outside/agents/agents.test.ts runs these programs with the same settings"

/**
 * By page: code blocks that are not run, identified by the words after the fence and the first line, with the reason.
 * Pages with their own test are not listed.
 */
export const notRun: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "README.md": {
    "sh npm install && npm start     # run: needs Node 22.19 or newer and nothing else":
      "docs/tutorials/01-first-paid-picture.md starts it; npm test runs this",
    'json {"task_info":{"id":"019a0c5e-…","status":"completed","created_at":"…","updated_at":"…"},"images":["http://localhost:8080/artifacts/art_…?expires=…&signature=…"]}':
      "a shortened result; docs/tutorials/01-first-paid-picture.md shows it whole"
  },
  "src/client/README.md": {
    'ts import { GatewayClient } from "generation-gateway-client"':
      "test/outside/package/package.test.ts runs the package"
  },
  "src/webhooks/README.md": {
    'ts import { verifyWebhook } from "generation-gateway-webhooks"':
      "test/outside/package/package.test.ts runs the package"
  },
  "CONTRIBUTING.md": {
    "sh npm install": "the tests run in the folder that it installed"
  },
  "docs/agents.md": {
    "sh export ANTHROPIC_BASE_URL=http://localhost:8080": agentsRun,
    'toml openai_base_url = "http://localhost:8080/v1"': agentsRun,
    "sh export CODEX_API_KEY=sk-…": agentsRun,
    "sh export GOOGLE_GEMINI_BASE_URL=http://localhost:8080/vendors/google": agentsRun,
    'json { "security": { "auth": { "selectedType": "gemini-api-key" } } }': agentsRun,
    "json {": agentsRun,
    'sh opencode run "Say hello"': agentsRun,
    "sh export OPENAI_API_BASE=http://localhost:8080/v1": agentsRun,
    "yaml models:": agentsRun
  },
  "docs/reference/batches.md": {
    "json {": "shortened; test/tasks/http/taskBatches.test.ts sends such requests"
  },
  "docs/reference/mcp.md": {
    "json {": "settings of other programs; test/tasks/http/mcpTools.test.ts calls the route",
    "ts const headers = { authorization: `Bearer ${key}` }":
      "test/outside/clients/mcp.test.ts makes the same calls"
  },
  "docs/reference/tasks.md": {
    'json { "task_info": { "id": "019a…", "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z" } }':
      "docs/tutorials/01-first-paid-picture.md shows the same and is run",
    'json { "quote": { "amount": "7.50", "currency": "credits" } }':
      "docs/tutorials/01-first-paid-picture.md shows the same and is run"
  },
  "test/faults/chaos/README.md": {
    "sh node test/faults/chaos/main.ts --seed=7 --minutes=60      # with the Node of `npm start`":
      "an hour; test/process/faults/chaos.test.ts runs it for a minute",
    "sh HISTORIES_MINUTES=10 HISTORIES_SEED=7 npx vitest run test/process/property/histories.test.ts":
      "ten minutes; the same file runs in npm test for less"
  },
  "docs/tutorials/01-first-paid-picture.md": {
    "sh DASHSCOPE_API_KEY=… npm start": "a real vendor's key, and a picture that costs money"
  },
  "docs/tutorials/03-test-your-program.md": {
    "sh SIMULATOR_DELAY='1 second' npm start": "the gateway of the samples has shorter jobs"
  },
  "docs/tutorials/04-openai-app.md": {
    "sh npm install openai": "it is installed",
    "python from openai import OpenAI":
      "needs a package of Python; chat.py and chat.ts make the same calls",
    "sh OPENAI_API_KEY=… npm start": "a real vendor's key"
  },
  "docs/tutorials/05-go-to-production.md": {
    "sh createuser --pwprompt gateway": "a Postgres with its tools",
    "sh export DATABASE_URL=postgres://gateway:…@db.internal:5432/gateway":
      "a Postgres and a bucket",
    "nginx upstream gateway {": "nginx is not installed",
    'sh pg_dump --format=custom --file=gateway.dump "$DATABASE_URL"': "a Postgres with its tools"
  },
  "docs/vendors-as-files.md": {
    "sh ACME_API_KEY=… CATALOG_FILE=$PWD/catalog.json npm start": "a real vendor's key"
  },
  "docs/tutorials/06-move-from-another-gateway.md": {
    "json {": "a request of LiteLLM"
  }
}
