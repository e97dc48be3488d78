import { assert, describe, it } from "vitest"
import { toolCallOf } from "../../../src/sandbox/ToolCalls.ts"

/** docs/reference/vendors.md#sandbox */
const schema = { type: "object", properties: { command: { type: "string" } } }
const names = ["shell", "weather"] as const

const chatTools = names.map((name) => ({
  type: "function",
  function: { name, parameters: schema }
}))
const responsesTools = names.map((name) => ({ type: "function", name, parameters: schema }))
const anthropicTools = names.map((name) => ({ name, input_schema: schema }))
const geminiTools = [
  { functionDeclarations: names.map((name) => ({ name, parametersJsonSchema: schema })) }
]

/** The same prompt with the same tools in each dialect. */
const bodies = (prompt: string) => ({
  chat: { messages: [{ role: "user", content: prompt }], tools: chatTools },
  chatParts: {
    messages: [{ role: "user", content: [{ type: "text", text: prompt }] }],
    tools: chatTools
  },
  responses: { input: prompt, tools: responsesTools },
  responsesItems: {
    input: [{ role: "user", content: [{ type: "input_text", text: prompt }] }],
    tools: responsesTools
  },
  anthropic: { messages: [{ role: "user", content: prompt }], tools: anthropicTools },
  anthropicParts: {
    messages: [{ role: "user", content: [{ type: "text", text: prompt }] }],
    tools: anthropicTools
  },
  gemini: { contents: [{ role: "user", parts: [{ text: prompt }] }], tools: geminiTools }
})

const plain = bodies("Say hello")

describe("the simulator answers with text", () => {
  it.each([
    ...Object.entries(plain),
    ["chat, auto", { ...plain.chat, tool_choice: "auto" }],
    ["chat, none", { ...plain.chat, tool_choice: "none" }],
    [
      "chat, some allowed",
      {
        ...plain.chat,
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: { mode: "auto", tools: [chatTools[1]] }
        }
      }
    ],
    ["responses, auto", { ...plain.responses, tool_choice: "auto" }],
    [
      "responses, some allowed",
      {
        ...plain.responses,
        tool_choice: { type: "allowed_tools", mode: "auto", tools: [responsesTools[1]] }
      }
    ],
    [
      "responses, a tool that the vendor runs",
      { ...plain.responses, tool_choice: { type: "mcp", server_label: "x" } }
    ],
    ["Anthropic, auto", { ...plain.anthropic, tool_choice: { type: "auto" } }],
    ["Anthropic, none", { ...plain.anthropic, tool_choice: { type: "none" } }],
    ["Gemini, AUTO", { ...plain.gemini, toolConfig: { functionCallingConfig: { mode: "AUTO" } } }],
    [
      "Gemini, VALIDATED",
      {
        ...plain.gemini,
        toolConfig: {
          functionCallingConfig: { mode: "VALIDATED", allowedFunctionNames: ["weather"] }
        }
      }
    ],
    ["forced without a tool", { ...plain.chat, tools: [], tool_choice: "required" }]
  ])("when tools are merely offered: %s", (_, body) => {
    assert.isUndefined(toolCallOf(body))
  })
})

describe("the simulator calls a tool", () => {
  it.each([
    ["chat", { ...plain.chat, tool_choice: "required" }, "shell"],
    [
      "chat, by name",
      { ...plain.chat, tool_choice: { type: "function", function: { name: "weather" } } },
      "weather"
    ],
    [
      "chat, one of some",
      {
        ...plain.chat,
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: { mode: "required", tools: [chatTools[1]] }
        }
      },
      "weather"
    ],
    ["responses", { ...plain.responses, tool_choice: "required" }, "shell"],
    [
      "responses, by name",
      { ...plain.responses, tool_choice: { type: "function", name: "weather" } },
      "weather"
    ],
    [
      "responses, one of some",
      {
        ...plain.responses,
        tool_choice: { type: "allowed_tools", mode: "required", tools: [responsesTools[1]] }
      },
      "weather"
    ],
    ["Anthropic, any", { ...plain.anthropic, tool_choice: { type: "any" } }, "shell"],
    [
      "Anthropic, by name",
      { ...plain.anthropic, tool_choice: { type: "tool", name: "weather" } },
      "weather"
    ],
    [
      "Gemini",
      { ...plain.gemini, toolConfig: { functionCallingConfig: { mode: "ANY" } } },
      "shell"
    ],
    [
      "Gemini, by name",
      {
        ...plain.gemini,
        tool_config: {
          function_calling_config: { mode: "ANY", allowed_function_names: ["weather"] }
        }
      },
      "weather"
    ]
  ])("that is forced: %s", (_, body, name) => {
    assert.deepEqual(toolCallOf(body), { name, arguments: { command: "simulated" } })
  })

  it.each(["parametersJsonSchema", "parameters_json_schema", "parameters"])(
    "with arguments for Gemini's schema in %s",
    (member) => {
      const function_declarations = [{ name: "shell", [member]: schema }]
      const tool_config = { function_calling_config: { mode: "ANY" } }
      const body = { ...plain.gemini, tools: [{ function_declarations }], tool_config }
      assert.deepEqual(toolCallOf(body)?.arguments, { command: "simulated" })
    }
  )

  it.each(Object.entries(bodies("Look outside [[sim:tool=weather]]")))(
    "that the prompt names: %s",
    (_, body) => {
      assert.strictEqual(toolCallOf(body)?.name, "weather")
    }
  )
})

/** A request that forces a tool, after calls of tools and more messages of the user. */
type Conversation = (called: ReadonlyArray<string>, more: ReadonlyArray<string>) => object

/** A call of a tool and its result, as each vendor's clients repeat them. */
const chatTurns = (name: string) => [
  { role: "assistant", tool_calls: [{ id: "1", type: "function", function: { name } }] },
  { role: "tool", tool_call_id: "1", content: "done" }
]
const responsesTurns = (name: string) => [
  { type: "reasoning", id: "r", summary: [] },
  { type: "function_call", call_id: "1", name, arguments: "{}" },
  { type: "function_call_output", call_id: "1", output: "done" }
]
const anthropicTurns = (name: string) => [
  { role: "assistant", content: [{ type: "tool_use", id: "1", name, input: {} }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: "done" }] }
]
const geminiTurns = (name: string) => [
  { role: "model", parts: [{ functionCall: { name, args: {} } }] },
  { role: "user", parts: [{ functionResponse: { name, response: {} } }] }
]
const geminiTurnsOfPython = (name: string) => [
  { role: "model", parts: [{ function_call: { name, args: {} } }] },
  { role: "user", parts: [{ function_response: { name, response: {} } }] }
]
const geminiAfter =
  (turns: (name: string) => ReadonlyArray<object>): Conversation =>
  (called, more) => ({
    contents: [
      ...plain.gemini.contents,
      ...called.flatMap(turns),
      ...more.map((text) => ({ role: "user", parts: [{ text }] }))
    ],
    tools: geminiTools,
    toolConfig: { functionCallingConfig: { mode: "ANY" } }
  })

const conversations: ReadonlyArray<readonly [string, Conversation]> = [
  [
    "chat",
    (called, more) => ({
      messages: [
        ...plain.chat.messages,
        ...called.flatMap(chatTurns),
        ...more.map((content) => ({ role: "user", content }))
      ],
      tools: chatTools,
      tool_choice: "required"
    })
  ],
  [
    "responses",
    (called, more) => ({
      input: [
        ...plain.responsesItems.input,
        ...called.flatMap(responsesTurns),
        ...more.map((content) => ({ type: "message", role: "user", content }))
      ],
      tools: responsesTools,
      tool_choice: "required"
    })
  ],
  [
    "Anthropic",
    (called, more) => ({
      messages: [
        ...plain.anthropic.messages,
        ...called.flatMap(anthropicTurns),
        ...more.map((content) => ({ role: "user", content }))
      ],
      tools: anthropicTools,
      tool_choice: { type: "any" }
    })
  ],
  ["Gemini", geminiAfter(geminiTurns)],
  ["Gemini, from Python", geminiAfter(geminiTurnsOfPython)]
]

/** Agents whose last call must return a structured result force a tool until then. */
describe.each(conversations)("a conversation that always forces a tool: %s", (_, after) => {
  const nameAfter = (called: ReadonlyArray<string>, more: ReadonlyArray<string> = []) =>
    toolCallOf(after(called, more))?.name

  it("calls each tool once, then gets a text", () => {
    assert.strictEqual(nameAfter([]), "shell")
    assert.strictEqual(nameAfter(["shell"]), "weather")
    assert.strictEqual(nameAfter(["weather"]), "shell")
    assert.isUndefined(nameAfter(["shell", "weather"]))
  })

  it("starts over with the user's next message", () => {
    assert.strictEqual(nameAfter(["shell", "weather"], ["And now?"]), "shell")
  })
})

it("a text follows a result without its call, as with previous_response_id", () => {
  const input = responsesTurns("shell").slice(-1)
  const body = { input, previous_response_id: "resp_1", tools: responsesTools }
  assert.isUndefined(toolCallOf({ ...body, tool_choice: "required" }))
})

describe("a custom tool of OpenAI's", () => {
  const freeText = { type: "custom", name: "note", format: { type: "text" } }
  const grammar = { type: "custom", name: "patch", format: { type: "grammar", syntax: "lark" } }

  it("gets a text as its arguments, in a chat and in responses", () => {
    const chat = {
      messages: [],
      tools: [{ type: "custom", custom: { name: "note" } }],
      tool_choice: { type: "custom", custom: { name: "note" } }
    }
    const responses = { input: "Hi", tools: [freeText], tool_choice: "required" }
    for (const body of [chat, responses]) {
      assert.deepEqual(toolCallOf(body), { name: "note", arguments: "simulated" })
    }
  })

  it("is not called if a grammar restricts the text", () => {
    assert.isUndefined(toolCallOf({ input: "Hi", tools: [grammar], tool_choice: "required" }))
  })

  it("is found where Codex offers its tools: in the input and in a namespace", () => {
    const tools = [{ type: "namespace", name: "functions", tools: [grammar, responsesTools[1]] }]
    const item = { type: "additional_tools", role: "developer", tools }
    const turn = { type: "message", role: "user", content: "Go [[sim:tool=weather]]" }
    const asked = { input: [item, turn] }
    assert.deepEqual(toolCallOf(asked), {
      name: "weather",
      namespace: "functions",
      arguments: { command: "simulated" }
    })
    const result = { type: "custom_tool_call_output", call_id: "1", output: "done" }
    assert.isUndefined(toolCallOf({ input: [...asked.input, result] }))
  })
})

describe("a directive in a prompt", () => {
  it("calls nothing if it names a tool that is not offered", () => {
    for (const name of ["unknown", "constructor", ""]) {
      for (const body of Object.values(bodies(`Go [[sim:tool=${name}]]`))) {
        assert.isUndefined(toolCallOf(body))
      }
    }
    assert.isUndefined(
      toolCallOf({ messages: [{ role: "user", content: "[[sim:tool=weather]]" }] })
    )
  })

  it("does not call what the client forbids", () => {
    const { chat } = bodies("Go [[sim:tool=weather]]")
    assert.isUndefined(toolCallOf({ ...chat, tool_choice: "none" }))
  })

  it("counts only in the last turn, and not in a tool's result", () => {
    const asked = { role: "user", content: "Go [[sim:tool=weather]]" }
    const called = { role: "assistant", tool_calls: [{ id: "1" }] }
    const result = { role: "tool", tool_call_id: "1", content: "sunny [[sim:tool=shell]]" }
    const more = { role: "user", content: "Thanks" }
    for (const messages of [
      [asked, called, result],
      [asked, called, result, more]
    ]) {
      assert.isUndefined(toolCallOf({ messages, tools: chatTools, tool_choice: "auto" }))
    }
  })
})
