import { useSignalEffect } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { api, dataOf } from "../api/client.ts"
import { followLive, liveState, useLive, wallet } from "../api/live.ts"
import { useResource } from "../api/resource.ts"
import { service, session, signOut } from "../api/session.ts"
import type { Session } from "../api/session.ts"
import { hrefOf, location, navigate, viewedUser } from "../router/location.ts"
import { routes } from "../routes.ts"
import { texts } from "../texts/en.ts"
import { Link } from "./Link.tsx"
import { setTheme, theme } from "./theme.ts"
import type { Theme } from "./theme.ts"
import { Credits } from "./Values.tsx"

/** What stands around every page: navigation, balance, who is signed in. */
export const Shell = ({ children }: { readonly children: ComponentChildren }) => {
  const who = session.value
  const viewed = viewedUser()
  const isUser = who?.role === "user" || viewed !== undefined
  // A stream belongs to the one who is looked at
  useEffect(() => (isUser ? followLive() : undefined), [isUser, viewed])
  if (who == null) return null
  return (
    <div class="shell">
      <a class="skip" href="#main">
        {texts.skip}
      </a>
      <TopBar who={who} />
      <Navigation isUser={isUser} />
      <main id="main" tabIndex={-1}>
        <OfflineBanner />
        {viewed !== undefined && <ViewingAs id={viewed} />}
        {children}
      </main>
    </div>
  )
}

const TopBar = ({ who }: { readonly who: Session }) => (
  <header class="top">
    <Link to="/" class="brand">
      {texts.console}
    </Link>
    {service.value?.sandbox === true && (
      <span class="badge" title={texts.sandboxHelp}>
        {texts.sandbox}
      </span>
    )}
    <span class="spacer" />
    <LiveState />
    {wallet.value !== undefined && (
      <span class="balance">
        <Credits amount={wallet.value.available_balance} /> {texts.credits}
      </span>
    )}
    <ThemeSwitch />
    <Who who={who} />
  </header>
)

const LiveState = () => (
  <span class="live" data-state={liveState.value} role="status">
    {texts.live[liveState.value]}
  </span>
)

const ThemeSwitch = () => (
  <select
    aria-label={texts.theme.label}
    value={theme.value}
    onChange={({ currentTarget: { value } }) =>
      setTheme(themes.find((it) => it === value) ?? "system")
    }
  >
    {themes.map((it) => (
      <option key={it} value={it}>
        {texts.theme[it]}
      </option>
    ))}
  </select>
)

const themes: ReadonlyArray<Theme> = ["system", "light", "dark"]

const Who = ({ who }: { readonly who: Session }) => {
  const { user } = who
  const name = user === null ? texts.operator : (user.name ?? user.email)
  return (
    <>
      <span class="who" title={user?.email}>
        {name}
      </span>
      <button type="button" onClick={() => void signOut()}>
        {texts.signOut}
      </button>
    </>
  )
}

const Navigation = ({ isUser }: { readonly isUser: boolean }) => {
  const menu = useRef<HTMLDetailsElement>(null)
  const { path } = location.value
  // On a narrow screen the menu closes when a page is opened
  useSignalEffect(() => {
    if (location.value.path !== "" && menu.current !== null) menu.current.open = false
  })
  const shown = routes.filter(
    ({ isInNavigation, role }) =>
      isInNavigation && (role === "both" || role === (isUser ? "user" : "operator"))
  )
  const links = (
    <ul>
      {shown.map((route) => (
        <li key={route.path}>
          <Link to={route.path} isCurrent={isWithin(path, route.path)}>
            {route.title}
          </Link>
        </li>
      ))}
    </ul>
  )
  return (
    <nav class="pages" aria-label={texts.navigation}>
      <div class="wide">{links}</div>
      <details class="narrow" ref={menu}>
        <summary>{texts.menu}</summary>
        {links}
      </details>
    </nav>
  )
}

const isWithin = (path: string, page: string): boolean =>
  path === page || (page !== "/" && path.startsWith(`${page}/`))

const OfflineBanner = () => {
  const [isOffline, setOffline] = useState(!navigator.onLine)
  useEffect(() => {
    const change = () => setOffline(!navigator.onLine)
    globalThis.addEventListener("online", change)
    globalThis.addEventListener("offline", change)
    return () => {
      globalThis.removeEventListener("online", change)
      globalThis.removeEventListener("offline", change)
    }
  }, [])
  useLive((event) => {
    if (event.type !== "poll") setOffline(false)
  })
  return isOffline ? (
    <p class="banner" role="status">
      {texts.offline}
    </p>
  ) : null
}

const ViewingAs = ({ id }: { readonly id: string }) => {
  const user = useResource(id, () =>
    dataOf(api.GET("/manage/v1/users/{id}", { params: { path: { id } } }))
  )
  return (
    <p class="banner">
      {texts.viewingAs(user.data?.email ?? texts.viewingAsUser(id))}{" "}
      <button type="button" onClick={() => navigate(hrefOf(`/users/${id}`, { user_id: "" }))}>
        {texts.stopViewing}
      </button>
    </p>
  )
}
