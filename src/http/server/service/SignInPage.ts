import { HttpServerResponse } from "effect/http"
import { basePathOf } from "../Paths.ts"
import { hardened } from "./DocsPage.ts"

/** A sign-in link, which can be used once. The secret is in the fragment, which browsers do not send. */
export const signInUrl = (baseUrl: string, token: string): string =>
  `${baseUrl}/sign-in#token=${token}`

/**
 * Continues from a page of the gateway, because a browser would not send the cookie in a redirect that started on
 * another site.
 */
export const signedInPage = (baseUrl: string) => {
  const console = `${basePathOf(baseUrl)}/console`
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Signed in</title>
<meta http-equiv="refresh" content="0;url=${console}">
<h1>Signed in</h1>
<p><a href="${console}">Continue</a></p>
</html>
`
  return HttpServerResponse.setHeader(
    hardened(HttpServerResponse.html(html)),
    "cache-control",
    "no-store"
  )
}
