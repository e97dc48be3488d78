import type { Gateway } from "./outcome.ts"

let gateway: Gateway = { url: "", key: "" }

export const useGateway = (it: Gateway) => {
  gateway = it
}

/** The generator's documented way to set the address and the key. */
export const gatewayFetch = async <A>(path: string, options: RequestInit): Promise<A> => {
  const headers = { ...options.headers, authorization: `Bearer ${gateway.key}` }
  const { headers: found, ok, ...response } = await fetched(path, { ...options, headers })
  if (!ok) throw new Error(`${path}: HTTP ${response.status}`)
  return { ...response, headers: found } as A
}

const fetched = async (path: string, options: RequestInit) => {
  const response = await fetch(`${gateway.url}${path}`, options)
  const text = await response.text()
  const data: unknown = text === "" ? {} : JSON.parse(text)
  return { data, headers: response.headers, ok: response.ok, status: response.status }
}
