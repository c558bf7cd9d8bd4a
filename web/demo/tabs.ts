// Tabs, by click and by the arrow keys.

export function startTabs(): void {
  const tabs = [...document.querySelectorAll<HTMLElement>('[role="tab"]')];
  const select = (chosen: HTMLElement) => {
    for (const tab of tabs) {
      const on = tab === chosen;
      tab.ariaSelected = String(on);
      tab.tabIndex = on ? 0 : -1;
      document.getElementById(tab.getAttribute('aria-controls')!)!.hidden = !on;
    }
  };
  const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };
  tabs.forEach((tab, i) => {
    tab.onclick = () => select(tab);
    tab.onkeydown = ({ key }) => {
      const step = steps[key];
      if (step === undefined) return;
      const next = tabs[(i + step + tabs.length) % tabs.length]!;
      select(next);
      next.focus();
    };
  });
}
