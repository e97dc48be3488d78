import type { Operations, Schemas as ClientSchemas } from "../../client/schema.ts"

export { pathsOfUser } from "../../client/schema.ts"

/** Converts types for openapi-fetch, which does not recognize `ReadonlyArray` as a list. */
type Plain<T> =
  T extends ReadonlyArray<infer Item>
    ? Array<Plain<Item>>
    : T extends object
      ? { readonly [Key in keyof T]: Plain<T[Key]> }
      : T

export type Schemas = Plain<ClientSchemas>

type Route = keyof Operations
type PathOf<R> = R extends `${string} ${infer Path}` ? Path : never
type MethodOf<Path extends string> = Route extends infer R
  ? R extends `${infer Method} ${Path}`
    ? Lowercase<Method>
    : never
  : never

type Body<Operation> = Operation extends { readonly body: infer Of }
  ? { requestBody: { content: { "application/json": Plain<Of> } } }
  : Operation extends { readonly body?: infer Of }
    ? { requestBody?: { content: { "application/json": Plain<NonNullable<Of>> } } }
    : { requestBody?: never }

interface Content<MediaType extends string, Of> {
  headers: { [name: string]: unknown }
  content: { [M in MediaType]: Of }
}

/** Excludes lists as files, which the console only links to. */
type Json<Response> = Plain<Exclude<Response, string>>

type Described<Operation extends { readonly response: unknown }> = Body<Operation> & {
  parameters: Pick<Operation, Extract<keyof Operation, "path" | "query">> & {
    header?: { "Idempotency-Key"?: string }
  }
  responses: {
    200: Content<"application/json", Json<Operation["response"]>>
    default: Content<"application/problem+json", Schemas["Problem"]>
  }
}

/** The operations of the client in the form that openapi-fetch expects. */
export type paths = {
  [Path in PathOf<Route>]: {
    [Method in MethodOf<Path>]: `${Uppercase<Method>} ${Path}` extends infer R extends Route
      ? Described<Operations[R]>
      : never
  }
}
