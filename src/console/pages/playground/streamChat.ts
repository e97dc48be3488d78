import { basePath } from "../../api/address.ts"
import { api } from "../../api/client.ts"
import { failureOf, Offline } from "../../api/problem.ts"
import type { Schemas } from "../../api/schema.ts"
import { service } from "../../api/session.ts"
import { parseJson } from "../../format/json.ts"
import type { ChatRequest } from "./chat.ts"
import { eventsOf, failureIn } from "./chat.ts"

interface Asked {
  readonly request: ChatRequest
  readonly dialect: { readonly piece: (event: unknown) => string }
  readonly controller: AbortController
  readonly onChange: (change: {
    readonly answer?: string
    readonly call?: Schemas["Call"]
    readonly isStopped?: boolean
  }) => void
}

/** The receipt is written shortly after the call ends. */
const receiptTries = 10
const receiptMillis = 300

const receiptOf = async (
  id: string,
  tries = receiptTries
): Promise<Schemas["Call"] | undefined> => {
  await new Promise((resolve) => setTimeout(resolve, receiptMillis))
  const found = await api.GET("/manage/v1/calls/{id}", { path: { id } }).catch(() => undefined)
  return found ?? (tries > 1 ? receiptOf(id, tries - 1) : undefined)
}

/** Sends a request, streams the response, and then reads the receipt. */
export const streamChat = async ({ controller, dialect, onChange, request }: Asked) => {
  const response = await fetch(`${basePath}${request.path}`, {
    method: "POST",
    credentials: "same-origin",
    headers: { ...request.headers, "content-type": "application/json" },
    body: JSON.stringify(request.body),
    signal: controller.signal
  }).catch((cause: unknown) => {
    if (controller.signal.aborted) throw cause
    throw new Offline("The gateway was not reached", { cause })
  })
  if (!response.ok) throw await refusalOf(response)
  const id = response.headers.get(`x-${service.value?.name ?? ""}-call-id`)
  try {
    if (response.body !== null) {
      let answer = ""
      for await (const event of eventsOf(response.body)) {
        const failure = failureIn(event)
        if (failure !== undefined) throw new Error(failure)
        answer += dialect.piece(event)
        onChange({ answer })
      }
    }
  } finally {
    if (controller.signal.aborted) onChange({ isStopped: true })
    const call = id === null ? undefined : await receiptOf(id)
    if (call !== undefined) onChange({ call })
  }
}

/** A problem of the gateway, or an error in the vendor's format. */
const refusalOf = async (response: Response) => {
  const text = await response.text()
  const value = parseJson(text) ?? text
  const message = failureIn(value)
  const failure = failureOf(response, value)
  return failure.problem.detail === "" && message !== undefined
    ? failureOf(response, message)
    : failure
}
