import type { ComponentType } from "preact"
import { useEffect } from "preact/hooks"
import { useBack } from "./api/online.ts"
import { useChunk, useResource } from "./api/resource.ts"
import type { Resource } from "./api/resource.ts"
import { isExpired, loadSession, session } from "./api/session.ts"
import { Link } from "./components/Link.tsx"
import { PageHeader } from "./components/PageHeader.tsx"
import { Palette } from "./components/shell/Palette.tsx"
import { Shell } from "./components/shell/Shell.tsx"
import { Loading, ProblemView } from "./components/States.tsx"
import { hrefOf, location, navigate, root, viewedUser } from "./router/location.ts"
import { matchPath } from "./router/match.ts"
import { routes } from "./routes.ts"
import type { PageProps, Route } from "./routes.ts"
import { texts } from "./texts/en.ts"

const signInPath = "/sign-in"

/** Shows the pages to a signed-in user; others sign in first and then return to the requested page. */
export const App = () => {
  const loading = useResource("session", loadSession)
  const isSignIn = location.value.path === signInPath
  const who = session.value
  const hasLink = isSignIn && globalThis.location.hash.startsWith("#token=")
  useEffect(() => {
    if (who === null && !isSignIn) navigate(signInHref(), true)
    if (who != null && isSignIn && !hasLink) navigate(nextHref(), true)
  }, [who, isSignIn, hasLink])
  if (who === undefined) {
    return (
      <main class="alone">
        <LoadingPart of={loading} />
      </main>
    )
  }
  if (isSignIn) return <SignIn />
  if (who === null) return <Loading />
  return (
    <>
      <Shell>
        <CurrentPage role={who.role} />
      </Shell>
      <Palette />
      {isExpired.value && <SignInAgain />}
    </>
  )
}

/** The sign-in page, with the page to return to. */
const signInHref = (): string => {
  const { path, query } = location.value
  const search = query.toString()
  const next = `${path}${search === "" ? "" : `?${search}`}`
  // A link to the playground carries its prompt in the fragment
  const { hash } = globalThis.location
  return `${root}${signInPath}${next === "/" ? "" : `?next=${encodeURIComponent(next)}`}${hash}`
}

/** The page to open after sign-in: always a page of the console, whatever the address says. */
const nextHref = (): string => {
  const next = location.value.query.get("next") ?? "/"
  const isOwn = routes.some(({ path }) => matchPath(path, next.split("?")[0] ?? "") !== undefined)
  const { hash } = globalThis.location
  return isOwn && next !== "/" ? `${root}${next}${hash}` : hrefOf("/", { next: "", user_id: "" })
}

const mayShow = (route: Route, role: "user" | "operator"): boolean =>
  route.role === "both" ||
  // An operator who views as a user sees only the user's pages
  route.role === (viewedUser() === undefined ? role : "user")

const CurrentPage = ({ role }: { readonly role: "user" | "operator" }) => {
  const { path } = location.value
  for (const route of routes) {
    const params = matchPath(route.path, path)
    if (params !== undefined && mayShow(route, role)) {
      return <LazyPage key={route.path + JSON.stringify(params)} route={route} params={params} />
    }
  }
  return (
    <>
      <PageHeader title={texts.states.notFoundTitle} />
      <p>{texts.states.notFoundDetail}</p>
      <p>
        <Link to="/">{texts.states.toHome}</Link>
      </p>
    </>
  )
}

/** Loaded separately, because signed-in users never need it. */
const SignIn = () => {
  const page = useChunk("sign in", () => import("./pages/signIn/SignInPage.tsx"))
  const { data: found } = page
  if (found !== undefined) return <found.SignInPage />
  return (
    <main class="alone">
      <LoadingPart of={page} />
    </main>
  )
}

const SignInAgain = () => {
  const { data: found } = useResource(
    "sign in again",
    () => import("./pages/signIn/SignInAgain.tsx")
  )
  return found === undefined ? null : <found.SignInAgain />
}

const loaded = new Map<string, ComponentType<PageProps>>()

const LazyPage = ({ params, route }: PageProps & { readonly route: Route }) => {
  const page = useChunk(route.path, async () => {
    const { default: Page } = await route.load()
    loaded.set(route.path, Page)
    return true
  })
  useBack(() => {
    if (page.cause !== undefined) page.reload()
  })
  const Page = loaded.get(route.path)
  if (Page !== undefined) return <Page params={params} />
  return (
    <>
      {page.cause !== undefined && <PageHeader title={route.title} />}
      <LoadingPart of={page} />
    </>
  )
}

/** What is shown instead of a part that is not there yet. */
const LoadingPart = ({ of }: { readonly of: Pick<Resource<unknown>, "cause" | "reload"> }) =>
  of.cause === undefined ? <Loading /> : <ProblemView cause={of.cause} onRetry={of.reload} />
