/** Texts of signing in. */
export const signInTexts = {
  title: "Sign in",
  email: "E-mail address",
  password: "Password",
  withPassword: "Sign in",
  withPasskey: "Sign in with a passkey",
  noPasskey: "No passkey was used. Try again, or sign in another way.",
  other: "Use an API key or the operator token",
  secret: "API key or operator token",
  secretHelp: "The key needs the manage scope. The browser does not store it.",
  withSecret: "Sign in with this key",
  oidc: "Sign in with your organization",
  linkTitle: "Your sign-in link",
  linkDetail: "The link signs you in once and expires after ten minutes.",
  withLink: "Sign in with this link",
  linkOther: "Sign in another way",
  ended: "Please sign in again.",
  again: "Sign in again",
  againDetail: "Your session has ended. Sign in to continue; what you typed is still there.",
  discard: "Discard it and sign out"
}
