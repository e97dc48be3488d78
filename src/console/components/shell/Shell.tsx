import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { followLive, liveState, wallet } from "../../api/live.ts"
import { isOnline } from "../../api/online.ts"
import { useResource } from "../../api/resource.ts"
import { service, session } from "../../api/session.ts"
import type { Session } from "../../api/session.ts"
import { shortcutOf } from "../../format/shortcut.ts"
import { hrefOf, location, navigate, viewedUser } from "../../router/location.ts"
import { groups, routes } from "../../routes.ts"
import type { Group, Route } from "../../routes.ts"
import { texts } from "../../texts/en.ts"
import { Icon, Mark } from "../Icon.tsx"
import { Link } from "../Link.tsx"
import { Credits } from "../Values.tsx"
import { AccountMenu } from "./AccountMenu.tsx"
import { openPalette, preparePalette } from "./Palette.tsx"

/** The frame of every page: navigation, balance, and the signed-in user. */
export const Shell = ({ children }: { readonly children: ComponentChildren }) => {
  const who = session.value
  const viewed = viewedUser()
  const isUser = who?.role === "user" || viewed !== undefined
  const [isMenuOpen, setMenuOpen] = useState(false)
  const { path } = location.value
  // The event stream belongs to the viewed user
  useEffect(() => (isUser ? followLive() : undefined), [isUser, viewed])
  useEffect(() => setMenuOpen(false), [path])
  if (who == null) return null
  return (
    <div class="shell">
      <a class="skip button" href="#main">
        {texts.skip}
      </a>
      <TopBar who={who} isMenuOpen={isMenuOpen} onMenu={setMenuOpen} />
      <Navigation isUser={isUser} isOpen={isMenuOpen} onClose={() => setMenuOpen(false)} />
      <main id="main" tabIndex={-1}>
        <div class="content">
          {!isOnline.value && (
            <p class="banner warning" role="status">
              {texts.offline}
            </p>
          )}
          {viewed !== undefined && <ViewingAs id={viewed} />}
          {children}
        </div>
      </main>
    </div>
  )
}

interface TopBarProps {
  readonly who: Session
  readonly isMenuOpen: boolean
  readonly onMenu: (isOpen: boolean) => void
}

const TopBar = ({ isMenuOpen, onMenu, who }: TopBarProps) => (
  <header class="top">
    <button
      type="button"
      class="quiet square menu-button"
      aria-label={texts.menu}
      aria-expanded={isMenuOpen}
      aria-controls="pages"
      onClick={() => onMenu(!isMenuOpen)}
    >
      <Icon name="menu" />
    </button>
    <Link to="/" class="brand">
      <Mark />
      <span>{texts.product}</span>
    </Link>
    {service.value?.sandbox === true && (
      <span class="badge" title={texts.sandboxHelp}>
        {texts.sandbox}
      </span>
    )}
    <span class="spacer" />
    <button
      type="button"
      class="jump"
      onFocus={preparePalette}
      onPointerEnter={preparePalette}
      onClick={openPalette}
    >
      <Icon name="search" />
      <span>{texts.openLabel}</span>
      <kbd>{shortcutOf("K")}</kbd>
    </button>
    <LiveState />
    {wallet.value !== undefined && (
      <Link to="/wallet" class="button quiet balance">
        <Credits amount={wallet.value.available_balance} />
        <span class="faint">{texts.credits}</span>
      </Link>
    )}
    <AccountMenu who={who} />
  </header>
)

const LiveState = () => {
  const state = liveState.value
  return (
    <span class="live" data-state={state} role="status" title={texts.live[state]}>
      <span>{texts.live[state]}</span>
    </span>
  )
}

interface NavigationProps {
  readonly isUser: boolean
  /** On a narrow screen the navigation opens on request. */
  readonly isOpen: boolean
  readonly onClose: () => void
}

const Navigation = ({ isOpen, isUser, onClose }: NavigationProps) => {
  useEffect(() => {
    if (!isOpen) return undefined
    const onPointer = ({ target }: PointerEvent) => {
      const isInside = target instanceof Element && target.closest(".pages, .menu-button") !== null
      if (!isInside) onClose()
    }
    const onKey = ({ key }: KeyboardEvent) => {
      if (key === "Escape") onClose()
    }
    document.addEventListener("pointerdown", onPointer)
    document.addEventListener("keydown", onKey)
    return () => {
      document.removeEventListener("pointerdown", onPointer)
      document.removeEventListener("keydown", onKey)
    }
  }, [isOpen])
  const role = isUser ? "user" : "operator"
  const shown = routes.filter((it) => it.group !== undefined && isOf(it, role))
  return (
    <nav id="pages" class="pages" aria-label={texts.navigation} data-open={isOpen || undefined}>
      {groups.map((group) => (
        <PageGroup key={group} group={group} routes={shown.filter((it) => it.group === group)} />
      ))}
    </nav>
  )
}

const isOf = ({ role }: Route, asked: "user" | "operator"): boolean =>
  role === "both" || role === asked

interface GroupProps {
  readonly group: Group
  readonly routes: ReadonlyArray<Route>
}

const PageGroup = ({ group, routes: pages }: GroupProps) => {
  const { path } = location.value
  if (pages.length === 0) return null
  const title = texts.groups[group]
  return (
    <>
      {title !== "" && (
        <p class="group-name" id={`group-${group}`}>
          {title}
        </p>
      )}
      <ul aria-labelledby={title === "" ? undefined : `group-${group}`}>
        {pages.map(({ icon, path: to, title: name }) => (
          <li key={to}>
            <Link to={to} isCurrent={isWithin(path, to)}>
              {icon !== undefined && <Icon name={icon} />}
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </>
  )
}

const isWithin = (path: string, page: string): boolean =>
  path === page || (page !== "/" && path.startsWith(`${page}/`))

const ViewingAs = ({ id }: { readonly id: string }) => {
  const user = useResource(id, () => api.GET("/manage/v1/users/{id}", { path: { id } }))
  return (
    <p class="banner warning">
      {texts.viewingAs(user.data?.email ?? texts.viewingAsUser(id))}
      <button
        type="button"
        class="small"
        onClick={() => navigate(hrefOf(`/users/${id}`, { user_id: "" }))}
      >
        {texts.stopViewing}
      </button>
    </p>
  )
}
