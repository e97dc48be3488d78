import { inject } from "vitest"

/** A gateway in a separate process, and what to expect of it. */
export interface World {
  readonly name: "the sandbox" | "a recorded upstream"
  readonly url: string
  /** The key of a user whom all files share. */
  readonly key: string
  readonly operatorToken: string
  /** The text of every response. */
  readonly text: string
}

declare module "vitest" {
  export interface ProvidedContext {
    worlds: ReadonlyArray<World>
  }
}

export const worlds = (): ReadonlyArray<World> => inject("worlds")

/** The key of a separate user, for a test that reads its wallet or its tasks. */
export const newKey = async ({ operatorToken, url }: World): Promise<string> => {
  const post = async (path: string, body: object) => {
    const response = await fetch(`${url}/manage/v1/users${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${operatorToken}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    return (await response.json()) as { readonly id: string; readonly key: string }
  }
  const { id } = await post("", { email: `${crypto.randomUUID()}@example.com` })
  await post(`/${id}/top-ups`, { amount: "1000.00" })
  const { key } = await post(`/${id}/api-keys`, { name: "own", scopes: ["inference", "manage"] })
  return key
}
