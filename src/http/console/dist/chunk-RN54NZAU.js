var r=n=>n.trim()===""||/^[1-9]\d{0,6}$/u.test(n.trim()),t=n=>n.trim()===""?null:Number(n);export{r as a,t as b};
