import { OpenApi } from "effect/http-api"

type Json = Record<string, unknown>

interface Words {
  readonly summary: string
  readonly description?: string
  /** Whether a vendor's own errors pass. The document removes this mark from the operation. */
  readonly isRelayed?: boolean
  /** An example of the body. */
  readonly example?: unknown
  /** Descriptions and examples of responses, by status. */
  readonly responses?: Readonly<
    Record<string | number, { readonly description: string; readonly example?: unknown }>
  >
}

export const asRecord = (value: unknown): Json =>
  typeof value === "object" && value !== null ? { ...value } : {}

const withExample = (content: unknown, example: unknown) => {
  const json = asRecord(content)["application/json"]
  return json === undefined || example === undefined
    ? {}
    : { content: { ...asRecord(content), "application/json": { ...asRecord(json), example } } }
}

/** Adds to an endpoint's OpenAPI operation what its schemas do not contain: texts and examples. */
export const documented = ({
  description,
  example,
  isRelayed = false,
  responses = {},
  summary
}: Words) =>
  OpenApi.annotations({
    summary,
    ...(description === undefined ? {} : { description }),
    transform: (operation) => {
      const declared = asRecord(operation["responses"])
      const told = Object.entries(responses).map(([status, { description, example }]) => {
        const response = asRecord(declared[status])
        return [status, { ...response, description, ...withExample(response["content"], example) }]
      })
      const body = asRecord(operation["requestBody"])
      return {
        ...operation,
        ...(isRelayed ? { isRelayed } : {}),
        ...("requestBody" in operation
          ? { requestBody: { ...body, ...withExample(body["content"], example) } }
          : {}),
        responses: { ...declared, ...Object.fromEntries(told) }
      }
    }
  })
