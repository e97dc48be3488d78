/**
 * A `fetch` for a client with built-in vendor addresses: requests to them go to the mock, and the mock's own address in
 * JSON responses is replaced by the first of them.
 */
export const fetchAt = (
  upstream: { readonly url: string },
  hosts: Readonly<Record<string, string>>
): typeof globalThis.fetch => {
  const pairs = Object.entries(hosts)
  const [official = ""] = pairs[0] ?? []
  return async (input, init) => {
    const request = new Request(input, init)
    const host = pairs.find(([origin]) => request.url.startsWith(`${origin}/`))
    if (host === undefined) throw new Error(`${request.url} is not an address of this vendor`)
    const [origin, path] = host
    const body = request.body === null ? {} : { body: await request.arrayBuffer() }
    const response = await fetch(`${upstream.url}${path}${request.url.slice(origin.length)}`, {
      method: request.method,
      headers: request.headers,
      redirect: "manual",
      ...body
    })
    if (response.headers.get("content-type") !== "application/json") return response
    const text = (await response.text()).replaceAll(upstream.url, official)
    const headers = new Headers(response.headers)
    headers.delete("content-length")
    return new Response(text, { status: response.status, headers })
  }
}
